// Uses the installed library through its public headers alone.
#include <iostream>

#include <baregrad/baregrad.h>

int main() {
  bg::manual_seed(7);
  const bg::Tensor x = bg::randn({4, 3});
  const bg::Tensor centred = x - bg::mean(x, 0, /*keepdims=*/true);
  std::cout << "column means after centring:\n" << bg::round(bg::mean(centred, 0) * 1e6) << "\n";
  try {
    static_cast<void>(bg::add(x, bg::ones({5})));
  } catch (const bg::ShapeError& error) {
    std::cout << error.what() << "\n";
  }
  return bg::all(bg::abs(bg::mean(centred, 0)) < 1e-6).item<bool>() ? 0 : 1;
}
