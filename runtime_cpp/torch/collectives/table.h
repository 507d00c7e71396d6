// The vendor's table of collectives.
#pragma once

#include <diopi/collectives.h>

#include <string>

namespace dipu::collectives {

// The table, of which required entries are never null; null where the vendor has none. Throws c10::Error when it lacks a
// required entry.
const diopiCollectivesApi_t* table();

// Throws c10::Error with the vendor's own text when `status` is not 0; `action` e.g. "launch dicl:all_reduce".
void check(int32_t status, diopiCommHandle_t comm, const char* action);

// The vendor's text for what went wrong last in the communicator, or in this thread for null.
std::string last_error(diopiCommHandle_t comm);

}  // namespace dipu::collectives
