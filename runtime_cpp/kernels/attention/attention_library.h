// Attention by the launcher's library, where it has one and the form is plain: what is no float64, sequences of one length, no
// mask, no slopes, and no window but the causal one.
#pragma once

#include "attention.h"

namespace diopi::kernels {

// attend() and attend_backward() by the library; the arguments are checked. False where it does not serve them: then
// nothing is written.
bool attend_in_library(Context ctx, const Attention& attention);
bool attend_backward_in_library(Context ctx, const AttentionGradients& gradients);

}  // namespace diopi::kernels
