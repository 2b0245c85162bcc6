// The table that make_golden.py wrote.
#include "golden.h"

namespace baregrad::test {

namespace {

using namespace optim;

#include "golden.inc"

}  // namespace

const std::vector<GoldenOptimizer>& golden_optimizers() { return kOptimizers; }
const std::vector<GoldenSchedule>& golden_schedules() { return kSchedules; }
const std::vector<GoldenPlateau>& golden_plateaus() { return kPlateaus; }
const std::vector<double>& golden_metrics() { return kMetrics; }

}  // namespace baregrad::test
