// Configs: errors, and the config in a checkpoint.
#include <cmath>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/train.h"

namespace baregrad::train {
namespace {

TEST(Config, ValuesReadBackToTheSame) {
  Config config;
  config.data = "fashion";
  config.data_folder = "/a \"place\"";
  config.model = "cnn";
  config.hidden = {7, 5, 3};
  config.epochs = 3;
  config.batch = 17;
  config.lr = 0.1;
  config.weight_decay = 1e-300;
  config.dropout = 1.0 / 3;
  config.optimizer = "lion";
  config.schedule = "onecycle";
  config.seed = 0xFFFFFFFFFFFFFFFFULL;
  config.items = 99;
  config.test_items = 98;
  config.workers = 0;
  config.alloc = "arena";
  config.checkpoint_steps = 4;
  config.keep = 9;
  const Config read = Config::from_values(config.values());
  EXPECT_EQ(read.values(), config.values());
  EXPECT_EQ(read.dropout, 1.0 / 3);
  EXPECT_EQ(read.seed, 0xFFFFFFFFFFFFFFFFULL);
  EXPECT_EQ(read.hidden, (std::vector<std::int64_t>{7, 5, 3}));
}

TEST(Config, HasNoHiddenLayerWhereNoneIsAskedFor) {
  Config config;
  config.hidden = {};
  EXPECT_TRUE(Config::from_values(config.values()).hidden.empty());
}

template <class Change>
std::string refusal(const Change& change) {
  Config config;
  change(config);
  try {
    config.check();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(Config, SaysWhatIsPossible) {
  EXPECT_EQ(refusal([](Config&) {}), "");
  EXPECT_EQ(refusal([](Config& c) { c.model = "rnn"; }),
            "train: there is no model 'rnn'; there are mlp, cnn");
  EXPECT_EQ(refusal([](Config& c) { c.data = "cifar"; }),
            "train: there is no data 'cifar'; there are mnist, fashion, digits");
  EXPECT_EQ(refusal([](Config& c) { c.dropout = 1.5; }),
            "train: dropout must be from 0 to 1, not 1.5");
  EXPECT_EQ(refusal([](Config& c) { c.epochs = 0; }),
            "train: the number of epochs must be from 1 to 1e+09, not 0");
  EXPECT_NE(refusal([](Config& c) { c.lr = std::nan(""); }), "");
  EXPECT_NE(refusal([](Config& c) { c.hidden = {64, 0}; }), "");
  EXPECT_NE(refusal([](Config& c) { c.optimizer = "newton"; }), "");
  EXPECT_NE(refusal([](Config& c) { c.schedule = "sometimes"; }), "");
  EXPECT_NE(refusal([](Config& c) { c.alloc = "stack"; }), "");
  EXPECT_NE(refusal([](Config& c) { c.keep = 0; }), "");
}

TEST(Config, ADamagedCheckpointIsAnIoError) {
  auto values = Config().values();
  values["lr"] = "fast";
  EXPECT_THROW(Config::from_values(values), IoError);
  values.erase("lr");
  EXPECT_THROW(Config::from_values(values), IoError);
}

}  // namespace
}  // namespace baregrad::train
