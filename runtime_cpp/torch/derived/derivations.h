// Every file of derived operators, in the order of registration: a later one may use what an earlier one derived. The generator reads
// this list, and leaves out the files that name an operator which the installed torch lacks or declares otherwise.
#pragma once

#include "derivation.h"

namespace dipu {

void derive_rounding(Derivations& d);
void derive_pointwise(Derivations& d);
void derive_activations(Derivations& d);
void derive_factories(Derivations& d);
void derive_indexing(Derivations& d);
void derive_reductions(Derivations& d);
void derive_order_statistics(Derivations& d);
void derive_linear_algebra(Derivations& d);
void derive_padding(Derivations& d);
void derive_resampling(Derivations& d);
void derive_normalization(Derivations& d);
void derive_random(Derivations& d);
void derive_foreach(Derivations& d);

}  // namespace dipu
