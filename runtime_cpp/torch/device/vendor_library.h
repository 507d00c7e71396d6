// The vendor library: opened at run time, so that one torch_dipu serves every vendor.
#pragma once

#include <string>

#include "export.h"

namespace dipu {

// Opens the library once; later calls do nothing. Throws c10::Error with one sentence that says what to do when the
// library is missing, does not load, or fails its checks.
DIPU_API void load_vendor_library(const std::string& path);

DIPU_API bool vendor_library_loaded() noexcept;

// Where the library was found; empty before it is loaded.
DIPU_API const std::string& vendor_library_path();

// The address of an exported function; null when the library lacks it.
DIPU_API void* vendor_symbol(const char* name) noexcept;

}  // namespace dipu
