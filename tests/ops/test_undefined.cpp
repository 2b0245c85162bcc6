// Every member and every function refuses an undefined tensor, with an error that names the
// function.
#include <functional>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"

namespace baregrad {
namespace {

/// The message of the Error that `call` throws; the test fails when there is none.
void expect_refused(const std::string& name, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << name << ": nothing was thrown";
  } catch (const Error& error) {
    const std::string text = error.what();
    // In-place forms may use the name of their op.
    const std::string in_place = name + "_:";
    EXPECT_TRUE(text.rfind(name + ":", 0) == 0 || text.rfind(in_place, 0) == 0)
        << name << " says: " << text;
    EXPECT_NE(text.find("undefined"), std::string::npos) << name << " says: " << text;
  }
}

#define BG_UNDEFINED(name, ...) expect_refused(name, [&] { static_cast<void>(__VA_ARGS__); })

TEST(Undefined, MembersNameThemselves) {
  const Tensor u;
  const Tensor x = ones({2, 2});
  BG_UNDEFINED("dtype", u.dtype());
  BG_UNDEFINED("shape", u.shape());
  BG_UNDEFINED("strides", u.strides());
  BG_UNDEFINED("layout", u.layout());
  BG_UNDEFINED("offset", u.offset());
  BG_UNDEFINED("ndim", u.ndim());
  BG_UNDEFINED("numel", u.numel());
  BG_UNDEFINED("nbytes", u.nbytes());
  BG_UNDEFINED("size", u.size(0));
  BG_UNDEFINED("is_contiguous", u.is_contiguous());
  BG_UNDEFINED("is_aligned", u.is_aligned());
  BG_UNDEFINED("storage", u.storage());
  BG_UNDEFINED("same_storage", u.same_storage(x));
  BG_UNDEFINED("same_storage", x.same_storage(u));
  BG_UNDEFINED("version", u.version());
  BG_UNDEFINED("data_ptr", u.data_ptr());
  BG_UNDEFINED("data", u.data<float>());
  BG_UNDEFINED("item", u.item());
  BG_UNDEFINED("item", u.item<float>());
  BG_UNDEFINED("to_vector", u.to_vector<float>());
  char room[8];
  BG_UNDEFINED("copy_to", u.copy_to(room));
  BG_UNDEFINED("set_data", u.set_data(x));
  BG_UNDEFINED("set_data", x.set_data(u));
  BG_UNDEFINED("requires_grad_", u.requires_grad_());
  BG_UNDEFINED("grad", u.grad());
  BG_UNDEFINED("set_grad", u.set_grad(x));
  BG_UNDEFINED("zero_grad", u.zero_grad());
  BG_UNDEFINED("backward", u.backward());
  BG_UNDEFINED("detach", u.detach());
  BG_UNDEFINED("retain_grad", u.retain_grad());
  BG_UNDEFINED("register_hook", u.register_hook([](const Tensor& g) { return g; }));
  BG_UNDEFINED("remove_hook", u.remove_hook(0));
  EXPECT_FALSE(u.defined());
  EXPECT_FALSE(u.requires_grad());
  EXPECT_TRUE(u.is_leaf());
  EXPECT_STREQ(u.grad_fn(), "");
  EXPECT_FALSE(u.is_same(x));
  // A gradient that backward has not computed.
  BG_UNDEFINED("numel", ones({2}).requires_grad_().grad().numel());
}

TEST(Undefined, MethodsNameTheirOp) {
  const Tensor u;
  const Tensor x = ones({2, 2});
  BG_UNDEFINED("astype", u.to(DType::Float64));
  BG_UNDEFINED("contiguous", u.contiguous());
  BG_UNDEFINED("clone", u.clone());
  BG_UNDEFINED("reshape", u.reshape({1}));
  BG_UNDEFINED("view", u.view({1}));
  BG_UNDEFINED("permute", u.permute({0}));
  BG_UNDEFINED("transpose", u.transpose(0, 1));
  BG_UNDEFINED("matrix_transpose", u.mT());
  BG_UNDEFINED("expand", u.expand({1}));
  BG_UNDEFINED("select", u[0]);
  BG_UNDEFINED("index", u.index({0}));
  BG_UNDEFINED("index", x.index({u}));
  BG_UNDEFINED("index_put", u.index_put_({0}, 1));
  BG_UNDEFINED("index_put", u.index_put({0}, 1));
  BG_UNDEFINED("index_put", x.index_put_({0}, u));
  BG_UNDEFINED("copy_", u.copy_(x));
  BG_UNDEFINED("copy_", x.copy_(u));
  BG_UNDEFINED("fill_", u.fill_(0));
}

TEST(Undefined, FunctionsNameThemselves) {
  const Tensor u;
  const Tensor x = ones({2, 2});
  const Tensor i = zeros({1}, DType::Int64);
  BG_UNDEFINED("empty_like", empty_like(u));
  BG_UNDEFINED("zeros_like", zeros_like(u));
  BG_UNDEFINED("ones_like", ones_like(u));
  BG_UNDEFINED("full_like", full_like(u, 1));
  BG_UNDEFINED("tril", tril(u));
  BG_UNDEFINED("triu", triu(u));
  BG_UNDEFINED("meshgrid", meshgrid({u}));
  BG_UNDEFINED("bernoulli", bernoulli(u));
  BG_UNDEFINED("astype", astype(u, DType::Float64));
  BG_UNDEFINED("relu", relu(u));
  BG_UNDEFINED("relu", relu_(u));
  BG_UNDEFINED("softplus", softplus(u));
  BG_UNDEFINED("logical_not", logical_not(u));
  BG_UNDEFINED("isnan", isnan(u));
  BG_UNDEFINED("signbit", signbit(u));
  BG_UNDEFINED("gelu", gelu(u));
  BG_UNDEFINED("add", add(u, x));
  BG_UNDEFINED("add", x + u);
  BG_UNDEFINED("add", u + 1);
  BG_UNDEFINED("add", add_(u, x));
  BG_UNDEFINED("add", x += u);
  BG_UNDEFINED("logical_and", logical_and(u, x));
  BG_UNDEFINED("less", u < x);
  BG_UNDEFINED("where", where(u, x, x));
  BG_UNDEFINED("where", where(x < 1, u, x));
  BG_UNDEFINED("clip", clip(u, 0, 1));
  BG_UNDEFINED("clip", clip(x, u, 1));
  BG_UNDEFINED("lerp", lerp(u, x, 0.5));
  BG_UNDEFINED("addcmul", addcmul(u, x, x));
  BG_UNDEFINED("masked_fill", masked_fill(u, x < 1, 0));
  BG_UNDEFINED("masked_fill", masked_fill(x, u, 0));
  BG_UNDEFINED("masked_fill", masked_fill_(u, x < 1, 0));
  BG_UNDEFINED("sum", sum(u));
  BG_UNDEFINED("prod", prod(u));
  BG_UNDEFINED("mean", mean(u));
  BG_UNDEFINED("var", var(u));
  BG_UNDEFINED("std", baregrad::std(u));
  BG_UNDEFINED("max", max(u));
  BG_UNDEFINED("min", min(u));
  BG_UNDEFINED("amax", amax(u));
  BG_UNDEFINED("amin", amin(u));
  BG_UNDEFINED("any", any(u));
  BG_UNDEFINED("all", all(u));
  BG_UNDEFINED("count_nonzero", count_nonzero(u));
  BG_UNDEFINED("sum_squares", sum_squares(u));
  BG_UNDEFINED("argmax", argmax(u));
  BG_UNDEFINED("argmin", argmin(u, 0));
  BG_UNDEFINED("logsumexp", logsumexp(u));
  BG_UNDEFINED("norm", norm(u));
  BG_UNDEFINED("cumulative_sum", cumulative_sum(u, 0));
  BG_UNDEFINED("cumulative_prod", cumulative_prod(u, 0));
  BG_UNDEFINED("cumulative_max", cumulative_max(u, 0));
  BG_UNDEFINED("softmax", softmax(u));
  BG_UNDEFINED("log_softmax", log_softmax(u));
  BG_UNDEFINED("matmul", matmul(u, x));
  BG_UNDEFINED("matmul", matmul(x, u));
  BG_UNDEFINED("matmul_out", matmul_out(u, x, x));
  BG_UNDEFINED("linear", linear(u, x));
  BG_UNDEFINED("linear", linear(x, u));
  BG_UNDEFINED("addmm", addmm(u, x, x));
  BG_UNDEFINED("bmm", bmm(u, x));
  BG_UNDEFINED("outer", outer(u, x));
  BG_UNDEFINED("vecdot", vecdot(u, x));
  BG_UNDEFINED("tensordot", tensordot(u, x, 1));
  BG_UNDEFINED("tensordot", tensordot(x, u, {0}, {0}));
  BG_UNDEFINED("einsum", einsum("ij->ji", {u}));
  BG_UNDEFINED("alias", alias(u));
  BG_UNDEFINED("as_strided", as_strided(u, {1}, {1}, 0));
  BG_UNDEFINED("permute_dims", permute_dims(u, {0}));
  BG_UNDEFINED("moveaxis", moveaxis(u, {0}, {1}));
  BG_UNDEFINED("reshape", reshape(u, {1}));
  BG_UNDEFINED("flatten", flatten(u));
  BG_UNDEFINED("expand", expand(u, {1}));
  BG_UNDEFINED("broadcast_to", broadcast_to(u, {1}));
  BG_UNDEFINED("broadcast_tensors", broadcast_tensors({x, u}));
  BG_UNDEFINED("squeeze", squeeze(u));
  BG_UNDEFINED("expand_dims", expand_dims(u, {0}));
  BG_UNDEFINED("flip", flip(u));
  BG_UNDEFINED("unfold", unfold(u, 0, 1, 1));
  BG_UNDEFINED("diagonal", diagonal(u));
  BG_UNDEFINED("slice", slice(u, 0, {}));
  BG_UNDEFINED("select", select(u, 0, 0));
  BG_UNDEFINED("narrow", narrow(u, 0, 0, 1));
  BG_UNDEFINED("split", split(u, 1));
  BG_UNDEFINED("split", split(u, std::vector<std::int64_t>{1}));
  BG_UNDEFINED("chunk", chunk(u, 1));
  BG_UNDEFINED("unstack", unstack(u));
  BG_UNDEFINED("concat", concat({x, u}));
  BG_UNDEFINED("stack", stack({x, u}));
  BG_UNDEFINED("repeat", repeat(u, 2));
  BG_UNDEFINED("repeat", repeat(x, u));
  BG_UNDEFINED("tile", tile(u, {2}));
  BG_UNDEFINED("roll", roll(u, {1}));
  BG_UNDEFINED("pad", pad(u, {1, 1}));
  BG_UNDEFINED("take", take(u, i));
  BG_UNDEFINED("take", take(x, u, 0));
  BG_UNDEFINED("index_select", index_select(u, 0, i));
  BG_UNDEFINED("take_along_axis", take_along_axis(u, i, 0));
  BG_UNDEFINED("gather", gather(u, 0, i));
  BG_UNDEFINED("scatter", scatter(u, 0, i, 1));
  BG_UNDEFINED("scatter_add", scatter_add(u, 0, i, x));
  BG_UNDEFINED("masked_select", masked_select(u, x < 1));
  BG_UNDEFINED("nonzero", nonzero(u));
  BG_UNDEFINED("sort", sort(u));
  BG_UNDEFINED("argsort", argsort(u));
  BG_UNDEFINED("topk", topk(u, 1));
  BG_UNDEFINED("searchsorted", searchsorted(u, 1));
  BG_UNDEFINED("unique_values", unique_values(u));
  BG_UNDEFINED("layer_norm", layer_norm(u, {2}));
  BG_UNDEFINED("rms_norm", rms_norm(u, {2}));
  BG_UNDEFINED("group_norm", group_norm(u, 1));
  BG_UNDEFINED("batch_norm", batch_norm(u, {}, {}));
  BG_UNDEFINED("cross_entropy", cross_entropy(u, i));
  BG_UNDEFINED("cross_entropy", cross_entropy(x, u));
  BG_UNDEFINED("scaled_dot_product_attention", scaled_dot_product_attention(u, x, x));
  BG_UNDEFINED("conv2d", conv2d(u, x));
  BG_UNDEFINED("conv1d", conv1d(x, u));
  BG_UNDEFINED("conv_transpose2d", conv_transpose2d(u, x));
  BG_UNDEFINED("max_pool2d", max_pool2d(u, {.kernel = {1, 1}}));
  BG_UNDEFINED("avg_pool1d", avg_pool1d(u, {.kernel = {1}}));
  BG_UNDEFINED("adaptive_avg_pool2d", adaptive_avg_pool2d(u, {1, 1}));
  BG_UNDEFINED("cholesky", linalg::cholesky(u));
  BG_UNDEFINED("det", linalg::det(u));
  BG_UNDEFINED("slogdet", linalg::slogdet(u));
  BG_UNDEFINED("inv", linalg::inv(u));
  BG_UNDEFINED("solve", linalg::solve(u, x));
  BG_UNDEFINED("matrix_power", linalg::matrix_power(u, 2));
  BG_UNDEFINED("eigh", linalg::eigh(u));
  BG_UNDEFINED("svd", linalg::svd(u));
  BG_UNDEFINED("pinv", linalg::pinv(u));
  BG_UNDEFINED("matrix_rank", linalg::matrix_rank(u));
  BG_UNDEFINED("qr", linalg::qr(u));
  BG_UNDEFINED("matrix_norm", linalg::matrix_norm(u));
  BG_UNDEFINED("vector_norm", linalg::vector_norm(u));
  BG_UNDEFINED("trace", linalg::trace(u));
  BG_UNDEFINED("cross", linalg::cross(u, x));
  BG_UNDEFINED("dropout", nn::dropout(u));
  BG_UNDEFINED("embedding", nn::embedding(u, x));
  BG_UNDEFINED("mse_loss", nn::mse_loss(u, x));
  BG_UNDEFINED("mse_loss", nn::mse_loss(x, u));
  BG_UNDEFINED("nll_loss", nn::nll_loss(u, i));
  BG_UNDEFINED("cosine_embedding_loss", nn::cosine_embedding_loss(u, x, x));
  EXPECT_EQ(to_string(u).empty(), false);
}

#undef BG_UNDEFINED

}  // namespace
}  // namespace baregrad
