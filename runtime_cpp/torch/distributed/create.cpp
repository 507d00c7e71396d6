// Chooses the collectives of a group: the vendor's, where it has any, beside those through the host.
#include "create.h"

#include <memory>
#include <utility>

#include "backend.h"
#include "collectives/device_collectives.h"
#include "settings.h"
#include "staged_collectives.h"

namespace dipu::distributed {

c10::intrusive_ptr<c10d::Backend> create_backend(const c10::intrusive_ptr<c10d::Backend>& host,
                                                 const c10::intrusive_ptr<c10d::Store>& store,
                                                 std::chrono::milliseconds timeout) {
    std::unique_ptr<Collectives> collectives = std::make_unique<StagedCollectives>(host);
    if (collectives::table() != nullptr && settings().collectives != "host") {
        collectives = std::make_unique<collectives::DeviceCollectives>(std::move(collectives), store, host->getRank(),
                                                                       host->getSize(), timeout);
    }
    return c10::make_intrusive<DiclBackend>(std::move(collectives), store, host->getRank(),
                                            host->getBackendOptions()->global_ranks_in_group, timeout);
}

}  // namespace dipu::distributed
