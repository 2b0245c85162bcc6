// The data sets in the form that the networks take.
#include <utility>

#include "baregrad/data_sets.h"
#include "baregrad/ops.h"
#include "baregrad/train.h"

namespace baregrad::train {

namespace {

/// From [N, H, W] to [N, 1, H, W].
Tensor with_channel(const Tensor& images) { return expand_dims(images, {1}); }

}  // namespace

Task load_task(const Config& config) {
  const std::string name =
      config.data.empty() ? data::best_available(config.data_folder) : config.data;
  data::ImageSet train = data::load_dataset(name, true, config.data_folder, config.items);
  const data::ImageSet test =
      data::load_dataset(name, false, config.data_folder, config.test_items);
  Task task;
  task.name = name;
  task.source = train.folder.string();
  task.scaling = data::Scaling::of(train.images);
  task.test_images = with_channel(test.images);
  task.train =
      std::make_shared<data::TensorDataset>(with_channel(train.images), train.labels, task.scaling);
  task.test = std::make_shared<data::TensorDataset>(task.test_images, test.labels, task.scaling);
  task.classes = std::move(train.classes);
  return task;
}

}  // namespace baregrad::train
