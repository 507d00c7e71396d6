// Attention by matrix products, for sequences that are all of one length: the scores of a block of queries at a time.
#pragma once

#include "attention.h"

namespace diopi::kernels {

// Position p of every sequence is row p of the tensors, so that a head is a matrix.
bool has_matrices(const Attention& attention);

// attend() and attend_backward() where has_matrices(); the arguments are checked.
void attend_by_products(Context ctx, const Attention& attention);
void attend_backward_by_products(Context ctx, const AttentionGradients& gradients);

}  // namespace diopi::kernels
