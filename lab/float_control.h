// MXCSR: whether this thread's denormals are kept, as IEEE 754 has it, or taken for zero.
#pragma once

namespace baregrad::lab {

#if defined(__SSE2__)
inline constexpr bool kHasFloatControl = true;
/// Results that would be denormal become zero (FTZ), and so do denormal operands (DAZ).
inline constexpr unsigned kFlushBits = 0x8040;
/// Control bits only: the flags that operations leave behind stay out of it.
inline unsigned float_control() noexcept { return __builtin_ia32_stmxcsr() & ~0x3FU; }
inline void set_float_control(unsigned control) noexcept { __builtin_ia32_ldmxcsr(control); }
#else
inline constexpr bool kHasFloatControl = false;
inline constexpr unsigned kFlushBits = 0;
inline unsigned float_control() noexcept { return 0; }
inline void set_float_control(unsigned) noexcept {}
#endif

/// Whatever happens to the control bits of this thread while it lives is undone.
class FloatControlScope {
 public:
  FloatControlScope() noexcept : before_(float_control()) {}
  ~FloatControlScope() { set_float_control(before_); }
  FloatControlScope(const FloatControlScope&) = delete;
  FloatControlScope& operator=(const FloatControlScope&) = delete;

  /// Denormals are zero from here on.
  static void flush() noexcept { set_float_control(float_control() | kFlushBits); }
  bool changed() const noexcept { return float_control() != before_; }

 private:
  unsigned before_;
};

}  // namespace baregrad::lab
