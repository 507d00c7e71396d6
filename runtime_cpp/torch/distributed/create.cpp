// Chooses the collectives of a group: staging through the host, as the contract has no collectives.
#include "create.h"

#include <memory>

#include "backend.h"
#include "staged_collectives.h"

namespace dipu::distributed {

c10::intrusive_ptr<c10d::Backend> create_backend(const c10::intrusive_ptr<c10d::Backend>& host,
                                                 std::chrono::milliseconds timeout) {
    return c10::make_intrusive<DiclBackend>(std::make_unique<StagedCollectives>(host), host->getRank(), host->getSize(),
                                            timeout);
}

}  // namespace dipu::distributed
