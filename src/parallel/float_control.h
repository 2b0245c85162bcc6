// The floating-point control bits of a thread.
#pragma once

namespace baregrad::parallel {

// Rounding mode, flush-to-zero and trap masks, without the sticky exception flags.
#if defined(__SSE2__)
inline constexpr unsigned kStickyFlags = 0x3f;
inline unsigned float_control() noexcept { return __builtin_ia32_stmxcsr() & ~kStickyFlags; }
inline void set_float_control(unsigned control) noexcept {
  const unsigned now = __builtin_ia32_stmxcsr();
  if ((now & ~kStickyFlags) != control) {
    __builtin_ia32_ldmxcsr(control | (now & kStickyFlags));
  }
}
#else
inline unsigned float_control() noexcept { return 0; }
inline void set_float_control(unsigned) noexcept {}
#endif

}  // namespace baregrad::parallel
