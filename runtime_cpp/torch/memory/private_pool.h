// A pool of memory that only graphs use: those that are given the same one share it, the last one ends it.
#pragma once

#include <c10/core/Allocator.h>

#include "export.h"

namespace dipu {

class DIPU_API PrivatePool {
public:
    // Joins the pool `id`; {0, 0} makes a new one. Throws c10::Error when all are taken.
    explicit PrivatePool(c10::MempoolId_t id = {0, 0});
    // Its memory becomes that of streams with the last graph: nothing may run that still uses it.
    ~PrivatePool();
    PrivatePool(const PrivatePool&) = delete;
    PrivatePool& operator=(const PrivatePool&) = delete;

    c10::MempoolId_t id() const { return id_; }
    int slot() const { return slot_; }

private:
    c10::MempoolId_t id_;
    int slot_;
};

}  // namespace dipu
