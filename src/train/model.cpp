// The networks, by the name in the config.
#include "baregrad/nn.h"
#include "baregrad/train.h"
#include "train/consistency.h"

namespace baregrad::train {

namespace {

constexpr std::int64_t kSide = kPictureSize;
constexpr std::int64_t kClasses = kNumClasses;

std::shared_ptr<nn::Module> make_mlp(const Config& config, Generator* generator) {
  std::vector<std::int64_t> sizes = {kSide * kSide};
  sizes.insert(sizes.end(), config.hidden.begin(), config.hidden.end());
  sizes.push_back(kClasses);
  return nn::sequential(
      {nn::make<nn::Flatten>(), nn::make<nn::MLP>(sizes, nn::MLPOptions{.dropout = config.dropout,
                                                                        .generator = generator})});
}

/// Two convolutions, each followed by a pooling that halves the picture, and two linear layers.
std::shared_ptr<nn::Module> make_cnn(const Config& config, Generator* generator) {
  constexpr std::int64_t kFirst = 32;
  constexpr std::int64_t kSecond = 64;
  constexpr std::int64_t kHidden = 128;
  constexpr std::int64_t kLeft = kSecond * (kSide / 4) * (kSide / 4);
  const nn::Conv2dOptions same{.padding = 1, .generator = generator};
  return nn::sequential(
      {nn::make<nn::Conv2d>(1, kFirst, 3, same), nn::make<nn::ReLU>(), nn::make<nn::MaxPool2d>(2),
       nn::make<nn::Conv2d>(kFirst, kSecond, 3, same), nn::make<nn::ReLU>(),
       nn::make<nn::MaxPool2d>(2), nn::make<nn::Flatten>(),
       nn::make<nn::MLP>(std::vector<std::int64_t>{kLeft, kHidden, kClasses},
                         nn::MLPOptions{.dropout = config.dropout, .generator = generator})});
}

}  // namespace

std::shared_ptr<nn::Module> make_model(const Config& config, Generator* generator) {
  config.check();
  return config.model == "cnn" ? make_cnn(config, generator) : make_mlp(config, generator);
}

}  // namespace baregrad::train
