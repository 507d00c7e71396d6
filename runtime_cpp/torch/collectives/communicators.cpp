// Makes communicators, for which the ranks meet at their store.
#include "communicators.h"

#include <algorithm>
#include <cstring>

namespace dipu::collectives {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

Communicator::~Communicator() {
    if (!aborted_ && table()->comm_destroy(handle_) != 0) {
        TORCH_WARN("dicl: a communicator could not be left: ", last_error(nullptr));
    }
}

void Communicator::abort() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_ && table()->comm_abort != nullptr) {
        aborted_ = true;
        table()->comm_abort(handle_);
    }
}

std::string Communicator::failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    int32_t status = 0;
    if (aborted_ || table()->comm_async_error == nullptr) {
        return {};
    }
    check(table()->comm_async_error(handle_, &status), handle_, "ask whether a collective failed");
    return status == 0 ? std::string() : last_error(handle_);
}

Communicators::Communicators(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
    : store_(std::move(store)),
      rank_(rank),
      size_(size) {}

CommunicatorPtr Communicators::all(c10::DeviceIndex device, std::chrono::milliseconds timeout) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = all_.find(device);
    if (found != all_.end()) {
        return found->second;
    }
    const CommunicatorPtr made = make("all/" + std::to_string(all_.size()), device, rank_, size_, timeout);
    all_.emplace(device, made);
    return made;
}

void Communicators::connect(c10::DeviceIndex device, std::chrono::milliseconds timeout) {
    connected_ = all(device, timeout) != nullptr;
}

CommunicatorPtr Communicators::pair(c10::DeviceIndex device, int peer, std::chrono::milliseconds timeout) {
    if (connected_) {
        return all(device, timeout);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pairs_.find({device, peer});
    if (found != pairs_.end()) {
        return found->second;
    }
    int uses = 0;  // devices that this pair has used before
    for (const auto& [place, made] : pairs_) {
        uses += place.second == peer ? 1 : 0;
    }
    const int low = std::min(rank_, peer);
    const int high = std::max(rank_, peer);
    const std::string key = "pair/" + std::to_string(low) + "/" + std::to_string(high) + "/" + std::to_string(uses);
    const CommunicatorPtr made = make(key, device, rank_ == low ? 0 : 1, peer == rank_ ? 1 : 2, timeout);
    pairs_.emplace(std::pair(device, peer), made);
    return made;
}

// Together: to end one may wait for the device, on which another one's work waits for ever.
void Communicators::abort() {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        return;  // a thread makes a communicator, and meets the failure when it has
    }
    table()->group_start();
    for (const auto& [device, made] : all_) {
        if (made) {
            made->abort();
        }
    }
    for (const auto& [place, made] : pairs_) {
        if (made) {
            made->abort();
        }
    }
    table()->group_end();
}

// All ranks come, then join; and whether all have joined is the same for each.
CommunicatorPtr Communicators::make(const std::string& key, c10::DeviceIndex device, int rank, int size,
                                    std::chrono::milliseconds timeout) {
    const auto meet = [&](const std::string& what, int64_t value) {
        const int64_t sum = store_->add(key + "/" + what + "/sum", value);
        if (store_->add(key + "/" + what + "/ranks", 1) == size) {
            store_->set(key + "/" + what, bytes_of("all"));
        }
        try {
            store_->wait({key + "/" + what}, timeout);
        } catch (const std::exception&) {
            // Each store has words of its own for it.
            TORCH_CHECK_WITH(DistBackendError, false, "timed out after ", timeout.count(),
                             " ms, in which not all ranks came to make a communicator");
        }
        return size == 1 ? sum : store_->add(key + "/" + what + "/sum", 0);
    };
    diopiCommUniqueId_t id{};
    if (rank == 0) {
        check(table()->get_unique_id(&id), nullptr, "name a communicator");
        store_->set(key + "/id", std::vector<uint8_t>(id.bytes, id.bytes + sizeof(id.bytes)));
    }
    meet("came", 0);
    const std::vector<uint8_t> known = store_->get(key + "/id");
    TORCH_CHECK(known.size() == sizeof(id.bytes),
                "the ranks were built with different versions of diopi/collectives.h");
    std::memcpy(id.bytes, known.data(), known.size());

    const DeviceScope scope(device);
    diopiCommHandle_t handle = nullptr;
    const bool joined = table()->comm_init_rank(&handle, size, &id, rank, device) == 0;
    const std::string mine = joined ? std::string() : last_error(nullptr);
    if (meet("lack", joined ? 0 : 1) != 0) {
        if (joined) {
            Communicator(handle, default_stream(device)).abort();
        }
        why_ = joined ? "another rank could not join" : mine;
        return nullptr;
    }
    return std::make_shared<Communicator>(handle, pool_stream(device, -1));
}

}  // namespace dipu::collectives
