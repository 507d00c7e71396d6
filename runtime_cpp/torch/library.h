// The parts of the backend that register operators of their own, each in its file.
#pragma once

#include <torch/library.h>

namespace dipu {

// `library` implements aten on PrivateUse1.
void register_storage(torch::Library& library);
void register_views(torch::Library& library);
void register_copy(torch::Library& library);
void register_recurrent(torch::Library& library);

// These make and keep libraries of their own.
void register_differentiation();
void register_lazy_bits();
void register_autocast();
void register_fallback();
void register_interposer();
void register_nested();

// A library that lives until the process ends; registrations end with it.
torch::Library& new_library(const char* name_space, c10::DispatchKey key);

}  // namespace dipu
