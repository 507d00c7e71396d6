// Temporaries of a context and the cache that their memory returns to.
#include "context.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "error.h"
#include "vendor.h"

using diopi::standalone::Layout;
using diopi::standalone::Storage;
using diopi::standalone::vendor;

namespace {

constexpr uint64_t kMostCachedBytes = uint64_t{256} << 20;

}  // namespace

diopiContext::diopiContext() : stream_(vendor().create_stream()) {}

diopiContext::~diopiContext() {
    // A failure of the device was reported by the call that synchronized; here only the memory is given back.
    static_cast<void>(vendor().api().sync_stream(stream_));
    tensors_.clear();
    cache_.clear();
    static_cast<void>(vendor().api().destroy_stream(stream_));
}

void diopiContext::synchronize() const { vendor().synchronize(stream_); }

std::shared_ptr<Storage> diopiContext::storage_of(uint64_t bytes, diopiDevice_t device) {
    // Only the very size: a larger storage would have its guard further away.
    const int32_t device_index = device == diopi_device ? vendor().current_device() : -1;
    const auto found = std::find_if(cache_.begin(), cache_.end(), [&](const auto& storage) {
        return storage->bytes() == bytes && storage->device() == device && storage->device_index() == device_index;
    });
    if (found == cache_.end()) return std::make_shared<Storage>(bytes, device);
    auto storage = std::move(*found);
    cache_.erase(found);
    cached_bytes_ -= bytes;
    if (diopi::standalone::fresh_is_set()) storage->refill();
    return storage;
}

diopiTensorHandle_t diopiContext::require_tensor(Layout layout, diopiDtype_t dtype, diopiDevice_t device) {
    const int64_t bytes = layout.storage_elements() * diopi::standalone::element_bytes(dtype);
    auto storage = storage_of(static_cast<uint64_t>(bytes), device);
    tensors_.push_back(diopi::standalone::make_tensor(std::move(storage), std::move(layout), dtype));
    return tensors_.back().get();
}

void diopiContext::keep_for_later(const diopiTensor& tensor) {
    if constexpr (diopi::kAddressSanitizer) {  // who still uses the tensor must be seen
        synchronize();
        return;
    }
    cached_bytes_ += tensor.storage->bytes();
    cache_.push_back(tensor.storage);
}

void diopiContext::return_tensor(diopiTensorHandle_t tensor) {
    // Temporaries go back in the order in which they came or the other way round, and soon.
    const auto last =
        std::find_if(tensors_.rbegin(), tensors_.rend(), [&](const auto& each) { return each.get() == tensor; });
    diopi::standalone::require(last != tensors_.rend(),
                               "diopiReturnTensor: the tensor is not one of diopiRequireTensor");
    keep_for_later(**last);
    tensors_.erase(std::next(last).base());
}

void diopiContext::reset() {
    for (const auto& tensor : tensors_) keep_for_later(*tensor);
    tensors_.clear();
    // Memory of other fresh bytes must not come back.
    if (cached_bytes_ <= kMostCachedBytes && !diopi::standalone::fresh_is_set()) return;
    synchronize();
    cache_.clear();
    cached_bytes_ = 0;
}

void diopiContext::check_guards() const {
    synchronize();
    for (const auto& tensor : tensors_) tensor->storage->check_guards();
    for (const auto& storage : cache_) storage->check_guards();
}
