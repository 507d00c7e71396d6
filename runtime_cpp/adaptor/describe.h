// What a tensor is, asked for in one call where the framework offers it.
#pragma once

#include <diopi/diopirt_ext.h>

namespace diopi::adaptor {

using Description = diopiTensorDescription_t;

// Fills the description, or gives the first status that is no success: the framework's own function, or one that asks
// for the parts. Found once, when the library is loaded.
using Describe = diopiError_t (*)(diopiConstTensorHandle_t tensor, Description* description);
extern const Describe describe [[gnu::visibility("hidden")]];

}  // namespace diopi::adaptor
