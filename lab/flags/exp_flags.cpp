// The ladder's scalar rungs, rebuilt with other flags by the compiler of this machine.
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "bench/ceilings.h"
#include "bench/matmul_truth.h"
#include "lab/compare_bits.h"
#include "lab/experiments.h"
#include "lab/flags/flags_build.h"
#include "lab/float_control.h"
#include "lab/ladder/rungs.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

using Multiply = void (*)(std::int64_t n, const float* a, const float* b, float* c);

// Part of the linker names of all functions of a rung.
constexpr std::string_view kOwnCode = "8baregrad3lab";
// The bits of the other sets are compared with those of this one.
constexpr const char* kReference = "-O0";
constexpr const char* kAsInstalled = "this program";

struct FlagSet {
  const char* name;
  std::vector<std::string> flags;
};
const std::vector<FlagSet>& flag_sets() {
  static const std::vector<FlagSet> sets = {
      {kReference, {"-O0"}},
      {"-O1", {"-O1"}},
      {"-O2", {"-O2"}},
      {"-O3", {"-O3"}},
      {"-Ofast", {"-Ofast"}},
      {"-O3 -march=native", {"-O3", "-march=native"}},
      {"-Ofast -march=native", {"-Ofast", "-march=native"}},
  };
  return sets;
}

/// One product, its truth, and all builds that compute it.
struct Inputs {
  explicit Inputs(const Notebook& notebook) : n(notebook.quick() ? 120 : 240) {
    Generator generator(notebook.seed());
    a = randn({n, n}, DType::Float32, &generator);
    b = randn({n, n}, DType::Float32, &generator);
    bench::MatmulCase product;
    bench::set_square(product, n);
    truth.emplace(product, a, b);
  }
  std::vector<float> multiply(Multiply function) const {
    std::vector<float> c(static_cast<std::size_t>(n * n));
    function(n, a.data<float>(), b.data<float>(), c.data());
    return c;
  }

  // Not a power of two: rows a power of two apart would map to few cache sets, and misses would
  // hide the effect of the flags.
  std::int64_t n;
  Tensor a;
  Tensor b;
  std::optional<bench::MatmulTruth> truth;
};

/// One rung with one set of flags.
struct Build {
  std::string flags;
  std::unique_ptr<SharedObject> object;  ///< null: the one that is linked into this program
  Multiply multiply = nullptr;
};

/// In the order of the sets; the program's own build comes last. Builds that fail are left out.
std::vector<Build> build_all(Notebook& notebook, const std::optional<Compiler>& compiler,
                             const ScratchFolder& folder, const Rung& rung) {
  std::vector<Build> builds;
  for (const FlagSet& set : flag_sets()) {
    if (!compiler) break;
    try {
      Build build{set.name,
                  std::make_unique<SharedObject>(*compiler, folder,
                                                 "lab/ladder/" + std::string(rung.file), set.flags),
                  nullptr};
      build.multiply = reinterpret_cast<Multiply>(
          build.object->find("multiply_" + std::string(rung.name) + "E"));
      builds.push_back(std::move(build));
    } catch (const Error& error) {
      notebook.absent(std::string(rung.name) + " with " + set.name, error.what());
    }
  }
  builds.push_back({kAsInstalled, nullptr, rung.multiply});
  return builds;
}

/// Size and width of the code; empty for the program's own build, which has no file of its own.
Json describe_code(const Build& build) {
  if (!build.object) return Json::object();
  Json fields = {{"code_bytes", build.object->code_bytes(kOwnCode)},
                 {"flushes_denormals", build.object->flushes()}};
  const std::optional<Arithmetic> counts = build.object->arithmetic(kOwnCode);
  if (counts) {
    fields.update({{"scalar_instructions", counts->scalar},
                   {"packed128_instructions", counts->packed128},
                   {"packed256_instructions", counts->packed256},
                   {"packed512_instructions", counts->packed512},
                   {"fused_instructions", counts->fused},
                   {"widest_bits", counts->widest_bits()}});
  }
  return fields;
}

void measure_rung(Notebook& notebook, const std::vector<Build>& builds, const Rung& rung,
                  const Inputs& inputs) {
  std::vector<Contender> contenders;
  auto c = std::make_shared<std::vector<float>>(static_cast<std::size_t>(inputs.n * inputs.n));
  for (const Build& build : builds) {
    contenders.push_back(contender_once(build.flags, [&inputs, multiply = build.multiply, c] {
      multiply(inputs.n, inputs.a.data<float>(), inputs.b.data<float>(), c->data());
    }));
  }
  const std::vector<Timing> timings =
      take_turns(contenders, {.seconds = notebook.quick() ? 0.4 : 8.0, .most = 200});
  const bool has_reference = builds.front().flags == kReference;
  const std::vector<float> reference = inputs.multiply(builds.front().multiply);
  const double flops = 2.0 * std::pow(static_cast<double>(inputs.n), 3);
  for (std::size_t i = 0; i < builds.size(); ++i) {
    Json fields = {{"rung", rung.name}, {"flags", builds[i].flags},
                   {"n", inputs.n},     {"dtype", "float32"},
                   {"threads", 1},      {"flops", flops}};
    fields.update(to_json(timings[i]));
    fields["gflop_per_s"] = flops / timings[i].median_ns;
    fields.update(describe_code(builds[i]));
    const std::vector<float> result = inputs.multiply(builds[i].multiply);
    fields["max_error"] = inputs.truth->max_error(result.data());
    fields["error_limit"] = inputs.truth->tolerance();
    fields["elements"] = result.size();
    if (has_reference) {
      const BitDifference difference = compare_bits(result, reference);
      fields.update({{"changed_elements", difference.elements}, {"max_ulps", difference.max_ulps}});
    }
    notebook.add("build", fields);
  }
}

/// The results of carried/promises.cpp, beside the required ones.
void check_promises(Notebook& notebook, const Compiler& compiler, const ScratchFolder& folder,
                    const FlagSet& set) {
  constexpr std::int64_t kCount = 1024;
  // 1, and then numbers too small to change it: a plain sum loses them all.
  std::vector<float> small(kCount, std::ldexp(1.0F, -25));
  small[0] = 1;
  const std::vector<float> nans(kCount, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> tiny(kCount, std::numeric_limits<float>::min());
  const SharedObject object(compiler, folder, "lab/flags/carried/promises.cpp", set.flags);
  const auto sum =
      reinterpret_cast<float (*)(const float*, std::int64_t)>(object.find("compensated_sum"));
  using Count = std::int64_t (*)(const float*, std::int64_t);
  const auto nan_count = reinterpret_cast<Count>(object.find("count_nans"));
  const auto half_count = reinterpret_cast<Count>(object.find("count_halves_left"));
  // As in a program that loads such an object without knowing its flags.
  const FloatControlScope scope;
  if (object.flushes()) FloatControlScope::flush();
  notebook.add("promises", {{"flags", set.name},
                            {"numbers", kCount},
                            {"compensated_sum", sum(small.data(), kCount)},
                            {"true_sum", 1 + std::ldexp(kCount - 1.0, -25)},
                            {"nans_found", nan_count(nans.data(), kCount)},
                            {"denormals_kept", half_count(tiny.data(), kCount)},
                            {"flushes_denormals", object.flushes()}});
}

}  // namespace

void run_flags(Notebook& notebook) {
  const ScratchFolder folder(std::filesystem::path(notebook.file("")).parent_path().string());
  std::optional<Compiler> compiler;
  std::string why = folder.why();
  if (folder.ok()) {
    why.clear();
    compiler = find_compiler(folder, why);
    unpack_sources(folder);
  }
  notebook.part("compiler", [&] {
    if (compiler) {
      notebook.add("compiler", {{"program", compiler->program}, {"version", compiler->version}});
      if (!can_disassemble(why)) notebook.absent("the width of the code", why);
    } else {
      notebook.absent("every build but this program's own", "no compiler works here: " + why);
    }
  });
  notebook.part("peak", [&] {
    notebook.add("peak", {{"dtype", "float32"},
                          {"threads", 1},
                          {"gflop_per_s", bench::fma_gflop_per_s(32, 1, 0.2)}});
  });
  const Inputs inputs(notebook);
  for (const Rung& rung : rungs()) {
    if (!rung.scalar) continue;
    notebook.part("rung/" + std::string(rung.name), [&] {
      measure_rung(notebook, build_all(notebook, compiler, folder, rung), rung, inputs);
    });
  }
  for (const FlagSet& set : flag_sets()) {
    if (!compiler) break;
    notebook.part(std::string("promises/") + set.name, [&] {
      try {
        check_promises(notebook, *compiler, folder, set);
      } catch (const Error& error) {
        notebook.absent(std::string("the promises of IEEE 754 with ") + set.name, error.what());
      }
    });
  }
}

}  // namespace baregrad::lab
