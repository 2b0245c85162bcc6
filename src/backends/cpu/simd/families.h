// The kernel files of one instruction set; register.cpp calls each of these once.
#pragma once

#include <hwy/highway.h>

#include "backends/cpu/abi.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_unary_float(KernelTable& table);
void register_unary_numeric(KernelTable& table);
void register_predicates(KernelTable& table);
void register_binary(KernelTable& table);
void register_comparisons(KernelTable& table);
void register_ternary(KernelTable& table);
void register_casts(KernelTable& table);
void register_reductions(KernelTable& table);
void register_rows(KernelTable& table);
void register_conv(KernelTable& table);
void register_norm(KernelTable& table);
void register_gemm_f32(KernelTable& table);
void register_gemm_f64(KernelTable& table);
void register_gemm_int(KernelTable& table);
void register_steps(KernelTable& table);
void register_staging(KernelTable& table);

}  // namespace baregrad::kernels::HWY_NAMESPACE
