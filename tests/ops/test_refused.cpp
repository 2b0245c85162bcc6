// Calls that C++ would silently interpret as something else do not compile. Each is tested by a
// requires expression, which is false if the call is refused.
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "baregrad/baregrad.h"

namespace baregrad {
namespace {

// The type is a template parameter, so that a refused call makes the expression false instead of an
// error.
#define BG_CALL(...) [](auto x) -> decltype(static_cast<void>(__VA_ARGS__)) {}
#define BG_COMPILES(...) static_assert(std::is_invocable_v<decltype(BG_CALL(__VA_ARGS__)), Tensor>)
#define BG_REFUSED(...) static_assert(!std::is_invocable_v<decltype(BG_CALL(__VA_ARGS__)), Tensor>)

// ---- A bool is not a number, and a number is not a bool
BG_COMPILES(var(x, 0, 1));
BG_COMPILES(var(x, 0, 1.0, true));
BG_COMPILES(var(x, {0, 1}, 0.5F, true));
BG_REFUSED(var(x, 0, true));
BG_REFUSED(var(x, 0, true, true));
BG_REFUSED(var(x, 0, 1.0, 1));
BG_REFUSED(baregrad::std(x, 0, true));
BG_COMPILES(baregrad::std(x, {}, 1));
BG_COMPILES(mean(x, 0, true));
BG_COMPILES(mean(x, {0, 1}, true));
BG_REFUSED(mean(x, 0, 1));
BG_REFUSED(mean(x, true));
BG_REFUSED(sum(x, 0, 1));
BG_REFUSED(sum(x, true));
BG_REFUSED(sum(x, 0, 1, DType::Float64));
BG_COMPILES(sum(x, 0, true, DType::Float64));
BG_COMPILES(sum(x));
BG_COMPILES(sum(x, {}, true));
BG_REFUSED(prod(x, 0, 1));
BG_REFUSED(max(x, 0, 1));
BG_REFUSED(amin(x, 0, 1.0));
BG_REFUSED(any(x, true));
BG_REFUSED(count_nonzero(x, 0, 1));
BG_REFUSED(argmax(x, true));
BG_REFUSED(argmax(x, 0, 1));
BG_COMPILES(argmax(x, 0, true));
BG_COMPILES(argmax(x));
BG_COMPILES(argmax(x, {}, true));
BG_REFUSED(norm(x, true));
BG_REFUSED(norm(x, 2, 0, 1));
BG_COMPILES(norm(x, 2, 0, true));
BG_REFUSED(logsumexp(x, 0, 1));
BG_REFUSED(softmax(x, true));
BG_COMPILES(softmax(x, 1));
BG_REFUSED(cumulative_sum(x, true));
BG_REFUSED(sort(x, true));
BG_REFUSED(sort(x, 0, 1));
BG_COMPILES(sort(x, 0, true));
BG_REFUSED(argsort(x, true));
BG_REFUSED(topk(x, 3, true));
BG_REFUSED(topk(x, 3, -1, 0));
BG_COMPILES(topk(x, 3, -1, false));
BG_REFUSED(searchsorted(x, 1.0, 1));
BG_REFUSED(concat({x, x}, true));
BG_COMPILES(concat({x, x}, 1));
BG_COMPILES(concat({x, x}, {}));
BG_REFUSED(stack({x, x}, true));
BG_REFUSED(linspace(x.item(), 1, 5, {}, 1));
BG_REFUSED(astype(x, DType::Float64, 1));
BG_REFUSED(linalg::matrix_norm(x, "fro"));
BG_REFUSED(linalg::matrix_norm(x, 2));
BG_REFUSED(linalg::matrix_norm(x, 1, 2.0));
BG_COMPILES(linalg::matrix_norm(x, true, "nuc"));
BG_COMPILES(linalg::matrix_norm(x, false, 2.0));
BG_COMPILES(linalg::matrix_norm(x, false, 2));
BG_COMPILES(linalg::matrix_norm(x));
BG_REFUSED(linalg::vector_norm(x, 0, 2.0));
BG_REFUSED(linalg::svd(x, 0));
BG_REFUSED(linalg::cholesky(x, 1));
BG_REFUSED(nn::dropout(x, true));
BG_REFUSED(nn::dropout(x, 0.5, 1));
BG_COMPILES(nn::dropout(x, 0.5, true));
BG_REFUSED(batch_norm(x, x, x, x, x, 0.1));
BG_COMPILES(batch_norm(x, x, x, x, x, true, 0.1));
BG_REFUSED(optim::clip_grad_norm_({x}, 1.0, 2.0));
BG_COMPILES(optim::clip_grad_norm_({x}, 1.0, true));
static_assert(!std::is_constructible_v<nn::Linear, int, int, int>);
static_assert(std::is_constructible_v<nn::Linear, int, int, bool>);
static_assert(!std::is_constructible_v<nn::Dropout, bool>);
static_assert(std::is_constructible_v<nn::Dropout, double>);
static_assert(!std::is_constructible_v<Index, bool>);
static_assert(!std::is_convertible_v<bool, Axes>);

// ---- Writes that would be lost
BG_REFUSED(x[0] = x);
BG_REFUSED(x[0] = Tensor());
BG_REFUSED(x.index({0}) = x);
BG_REFUSED(relu(x) = x);
BG_REFUSED(Tensor() = x);
BG_COMPILES(x = x[0]);
BG_COMPILES(x[0].copy_(x));
BG_COMPILES(x[0] += 1);
BG_COMPILES(x.index_put_({0}, x));
BG_COMPILES(x.index_put_({0}, 1.5));
static_assert(std::is_same_v<decltype(Tensor().index_put({0}, 1)), Tensor>);
static_assert(std::is_same_v<decltype(Tensor().index_put_({0}, 1)), const Tensor&>);
static_assert(std::is_nothrow_copy_assignable_v<Tensor> &&
              std::is_nothrow_move_assignable_v<Tensor>);
static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_swappable_v<Tensor>);

// ---- Layers in an order that the compiler chooses
using Layer = std::shared_ptr<nn::Linear>;
static_assert(!std::is_constructible_v<nn::Sequential, Layer, Layer>);
template <class... T>
concept Chained = requires(T... layers) {
  nn::sequential(layers...);
};
static_assert(Chained<> && Chained<std::initializer_list<nn::ModulePtr>>);
static_assert(!Chained<Layer> && !Chained<Layer, Layer>);

#undef BG_CALL
#undef BG_COMPILES
#undef BG_REFUSED

}  // namespace
}  // namespace baregrad
