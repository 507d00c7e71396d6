// Reads the table from the vendor's library, whose own may be older and shorter.
#include "table.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "../../contract/error_text.h"
#include "device/device_api.h"
#include "device/vendor_library.h"

namespace dipu::collectives {
namespace {

std::optional<diopiCollectivesApi_t> load() {
    const auto get = reinterpret_cast<const diopiCollectivesApi_t* (*)()>(vendor_symbol("diopiGetCollectivesApi"));
    const diopiCollectivesApi_t* const theirs = get == nullptr ? nullptr : get();
    if (theirs == nullptr) {
        return std::nullopt;
    }
    diopiCollectivesApi_t api{};
    std::memcpy(&api, theirs, std::min<std::size_t>(theirs->size, sizeof(api)));
    const std::pair<const char*, bool> required[] = {
        {"get_unique_id", api.get_unique_id != nullptr},
        {"comm_init_rank", api.comm_init_rank != nullptr},
        {"comm_destroy", api.comm_destroy != nullptr},
        {"all_reduce", api.all_reduce != nullptr},
        {"broadcast", api.broadcast != nullptr},
        {"all_gather", api.all_gather != nullptr},
        {"reduce_scatter", api.reduce_scatter != nullptr},
        {"send", api.send != nullptr},
        {"recv", api.recv != nullptr},
        {"group_start", api.group_start != nullptr},
        {"group_end", api.group_end != nullptr},
    };
    for (const auto& [name, present] : required) {
        TORCH_CHECK(present, "the table of collectives of the vendor library ", vendor_library_path(), " lacks '", name,
                    "', which every such table must have");
    }
    return api;
}

}  // namespace

const diopiCollectivesApi_t* table() {
    static const std::optional<diopiCollectivesApi_t> loaded = load();
    return loaded ? &*loaded : nullptr;
}

std::string last_error(diopiCommHandle_t comm) {
    const auto words = table()->get_last_error_string;
    const char* const text = words == nullptr ? nullptr : words(comm);
    return text == nullptr || *text == '\0' ? last_vendor_error() : diopi::error_text(text);
}

void check(int32_t status, diopiCommHandle_t comm, const char* action) {
    TORCH_CHECK(status == 0, "dipu could not ", action, " (status ", status, "): ", last_error(comm));
}

}  // namespace dipu::collectives
