// The vendor's device functions as one complete table, whichever form the vendor offers them in.
#pragma once

#include <diopi/device.h>

#include <string>

#include "export.h"

namespace dipu {

// The table; required entries are never null, optional ones may be (each use has its fallback). Throws c10::Error when no
// vendor library is loaded or it lacks a required function.
const diopiDeviceApi_t& device_api();

// Builds the table from the loaded library: its own table, the functions that initLibrary() registers, or the device_*
// functions that it exports. Throws c10::Error with one sentence naming what is missing.
void load_device_api();

// The table that the diopiRegister...Func functions fill.
diopiDeviceApi_t& registered_api();

// Throws c10::Error with the vendor's own text when `status` is not 0; `action` e.g. "create a stream".
void check_device(int32_t status, const char* action);

// The vendor's text for its last error, or a remark that it gives none; UTF-8, and not longer than people read.
std::string last_vendor_error();

// Why an operator of this thread failed: what diopiGetLastErrorString says, else the device.
DIPU_API std::string last_operator_error();

}  // namespace dipu
