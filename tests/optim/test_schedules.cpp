// Schedules: PyTorch's values, exact resumption, errors.
#include <limits>

#include "baregrad/error.h"
#include "golden.h"

namespace baregrad {
namespace {

using namespace test;
using optim::SGD;

Tensors one_parameter() { return {zeros({1}, DType::Float32)}; }

TEST(Schedules, HavePyTorchsValues) {
  for (const GoldenSchedule& row : golden_schedules()) {
    SGD optimizer(one_parameter(), {.lr = 0.1, .momentum = 0.9});
    const Scheduled schedule = row.make(optimizer);
    for (std::size_t k = 0; k < row.lr.size(); ++k) {
      const optim::Group& group = optimizer.groups()[0];
      // PyTorch computes each lr from the previous one; these are closed forms.
      EXPECT_NEAR(group.lr(), row.lr[k], 1e-13) << row.name << ' ' << k;
      EXPECT_NEAR(group["momentum"], row.momentum[k], 1e-15) << row.name << ' ' << k;
      EXPECT_EQ(schedule->last_step(), static_cast<std::int64_t>(k));
      EXPECT_EQ(schedule->last_lr(), std::vector<double>{group.lr()});
      if (k + 1 < row.lr.size()) schedule->step();
    }
  }
}

TEST(Schedules, ResumeExactly) {
  for (const GoldenSchedule& row : golden_schedules()) {
    SGD optimizer(one_parameter(), {.lr = 0.1, .momentum = 0.9});
    optimizer.add_group(one_parameter(), {.lr = 1.0 / 7, .momentum = 0.9});
    SGD other(one_parameter(), {.lr = 0.3, .momentum = 0.1});
    other.add_group(one_parameter(), {.lr = 5});
    const Scheduled schedule = row.make(optimizer);
    const Scheduled resumed = row.make(other);
    for (int k = 0; k < 11; ++k) schedule->step();
    resumed->load_state(schedule->state());
    for (int k = 0; k < 8; ++k) {
      for (std::size_t g = 0; g < 2; ++g) {
        EXPECT_EQ(optimizer.groups()[g].lr(), other.groups()[g].lr()) << row.name;
      }
      EXPECT_EQ(schedule->state().values, resumed->state().values);
      schedule->step();
      resumed->step();
    }
  }
}

TEST(Schedules, PlateausArePyTorchs) {
  for (const GoldenPlateau& row : golden_plateaus()) {
    SGD optimizer(one_parameter(), {.lr = 0.1});
    optim::ReduceLROnPlateau schedule(optimizer, row.options);
    for (std::size_t k = 0; k < row.lr.size(); ++k) {
      if (k == 6) {  // a resumed one continues identically
        const State state = schedule.state();
        optim::ReduceLROnPlateau fresh(optimizer, row.options);
        fresh.load_state(state);
        EXPECT_EQ(fresh.state().values, state.values);
        EXPECT_EQ(fresh.best(), schedule.best());
      }
      schedule.step(golden_metrics()[k]);
      EXPECT_EQ(optimizer.groups()[0].lr(), row.lr[k]) << row.name << ' ' << k;
    }
  }
  SGD optimizer(one_parameter(), {.lr = 0.1});
  optim::ReduceLROnPlateau schedule(optimizer, {.factor = 0.5, .patience = 0});
  schedule.step(std::numeric_limits<double>::quiet_NaN());  // not better
  EXPECT_EQ(schedule.last_lr(), std::vector<double>{0.05});
}

TEST(Schedules, GroupsAddedLaterAndForeignStatesAreRefused) {
  SGD optimizer(one_parameter(), {.lr = 0.1});
  optim::StepLR schedule(optimizer, 2);
  State state = schedule.state();
  state.values["schedule"] = "LinearLR";
  state.values.erase("step");
  EXPECT_EQ(error_of<ValueError>([&] { schedule.load_state(state); }),
            "StepLR.load_state: the state does not fit:\n"
            "  'schedule' is 'LinearLR', not 'StepLR'\n"
            "  'step' is missing");
  optimizer.add_group(one_parameter());
  EXPECT_EQ(error_of<ValueError>([&] { schedule.step(); }),
            "StepLR: the optimizer has 2 groups; it had 1 when the schedule was made");
  EXPECT_EQ(schedule.last_step(), 0);
}

TEST(Schedules, NumbersThatMakeNoCurveAreRefused) {
  EXPECT_THROW(optim::step_curve(0), ValueError);
  EXPECT_THROW(optim::cosine_curve(0), ValueError);
  EXPECT_THROW(optim::cosine_restarts_curve(0), ValueError);
  EXPECT_THROW(optim::cosine_restarts_curve(3, 0), ValueError);
  EXPECT_THROW(optim::linear_curve(0), ValueError);
  EXPECT_THROW(optim::linear_curve(0.5, 2), ValueError);
  EXPECT_THROW(optim::linear_curve(0.5, 1, 0), ValueError);
  EXPECT_THROW(optim::sequential_curve({}, {}), ValueError);
  EXPECT_THROW(optim::sequential_curve({optim::cosine_curve(3)}, {1}), ValueError);
  EXPECT_THROW(optim::sequential_curve({optim::Curve()}, {}), ValueError);
  SGD optimizer(one_parameter());
  EXPECT_THROW(optim::OneCycleLR(optimizer, {.total_steps = 5}), ValueError);
  EXPECT_THROW(optim::OneCycleLR(optimizer, {.max_lr = {1}}), ValueError);
  EXPECT_THROW(optim::OneCycleLR(optimizer, {.max_lr = {1}, .total_steps = 5, .pct_start = 2}),
               ValueError);
  EXPECT_THROW(optim::ReduceLROnPlateau(optimizer, {.factor = 1}), ValueError);
  optim::Adagrad without(one_parameter());
  EXPECT_EQ(
      error_of<ValueError>([&] { optim::OneCycleLR(without, {.max_lr = {1}, .total_steps = 5}); }),
      "OneCycleLR: Adagrad has no momentum; set cycle_momentum to false");
}

TEST(Schedules, OneCycleEndsWithItsSteps) {
  optim::Adam optimizer(one_parameter());
  optim::OneCycleLR schedule(optimizer, {.max_lr = {1}, .total_steps = 10, .pct_start = 0.1});
  // A first phase of length 0: PyTorch divides by zero here.
  EXPECT_EQ(optimizer.groups()[0].lr(), 1);
  for (int k = 0; k < 10; ++k) schedule.step();
  EXPECT_EQ(error_of<ValueError>([&] { schedule.step(); }),
            "OneCycleLR: step 11 lies beyond total_steps, 10");
  EXPECT_GT(optimizer.groups()[0]["beta1"], 0.8);
}

TEST(Schedules, RestartsOfAnyLength) {
  const optim::Curve curve = optim::cosine_restarts_curve(1, 3);
  EXPECT_EQ(curve(0, 1), 1);
  EXPECT_EQ(curve(1, 1), 1);
  EXPECT_EQ(curve(4, 1), 1);
  EXPECT_EQ(curve(13, 1), 1);
  const double late = curve(std::numeric_limits<std::int64_t>::max(), 1);
  EXPECT_TRUE(late >= 0 && late <= 1);
}

}  // namespace
}  // namespace baregrad
