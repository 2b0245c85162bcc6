// MXCSR: whether this thread keeps denormals, as IEEE 754 requires, or flushes them to zero.
#pragma once

namespace baregrad::lab {

#if defined(__SSE2__)
inline constexpr bool kHasFloatControl = true;
/// FTZ and DAZ: denormal results become zero, and denormal operands count as zero.
inline constexpr unsigned kFlushBits = 0x8040;
/// Only the control bits, without the exception flags.
inline unsigned float_control() noexcept { return __builtin_ia32_stmxcsr() & ~0x3FU; }
inline void set_float_control(unsigned control) noexcept { __builtin_ia32_ldmxcsr(control); }
#else
inline constexpr bool kHasFloatControl = false;
inline constexpr unsigned kFlushBits = 0;
inline unsigned float_control() noexcept { return 0; }
inline void set_float_control(unsigned) noexcept {}
#endif

/// Restores the control bits of this thread at the end of a scope.
class FloatControlScope {
 public:
  FloatControlScope() noexcept : before_(float_control()) {}
  ~FloatControlScope() { set_float_control(before_); }
  FloatControlScope(const FloatControlScope&) = delete;
  FloatControlScope& operator=(const FloatControlScope&) = delete;

  /// From here on denormals are flushed to zero.
  static void flush() noexcept { set_float_control(float_control() | kFlushBits); }
  bool changed() const noexcept { return float_control() != before_; }

 private:
  unsigned before_;
};

}  // namespace baregrad::lab
