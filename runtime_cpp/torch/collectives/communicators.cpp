// Makes communicators, for which the ranks meet at their store.
#include "communicators.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace dipu::collectives {
namespace {

// A call only puts work on a stream. One that lasts longer waits for another rank, and the abort is to end it.
constexpr std::chrono::seconds kLongestCall{1};

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

Communicator::Use::Use(const CommunicatorPtr& communicator) : communicator_(communicator) {
    const std::lock_guard<std::mutex> lock(communicator->mutex_);
    TORCH_CHECK_WITH(DistBackendError, !communicator->left_, "the communicator was aborted");
    ++communicator->uses_;
}

Communicator::Use::~Use() {
    if (communicator_ != nullptr) {
        {
            const std::lock_guard<std::mutex> lock(communicator_->mutex_);
            --communicator_->uses_;
        }
        communicator_->unused_.notify_all();
    }
}

bool Communicator::end_uses(std::unique_lock<std::mutex>& lock) {
    if (std::exchange(left_, true)) {
        return false;
    }
    unused_.wait_for(lock, kLongestCall, [this] { return uses_ == 0; });
    return true;
}

void Communicator::leave() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (end_uses(lock) && table()->comm_destroy(handle_) != 0) {
        TORCH_WARN("dicl: a communicator could not be left: ", last_error(nullptr));
    }
}

void Communicator::abort() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (table()->comm_abort != nullptr && end_uses(lock)) {
        table()->comm_abort(handle_);
    }
}

std::string Communicator::failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    int32_t status = 0;
    if (left_ || table()->comm_async_error == nullptr) {
        return {};
    }
    check(table()->comm_async_error(handle_, &status), handle_, "ask whether a collective failed");
    return status == 0 ? std::string() : last_error(handle_);
}

Communicators::Communicators(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
    : store_(std::move(store)),
      rank_(rank),
      size_(size) {}

template <class Key, class Make>
CommunicatorPtr Communicators::known_or_made(std::map<Key, CommunicatorPtr>& known, const Key& key, const Make& make) {
    const std::lock_guard<std::mutex> one_by_one(making_);
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = known.find(key);
        if (found != known.end()) {
            return found->second;
        }
    }
    const CommunicatorPtr made = make();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_ && made) {
        made->abort();
    }
    known.emplace(key, made);
    return made;
}

CommunicatorPtr Communicators::all(c10::DeviceIndex device, std::chrono::milliseconds timeout) {
    return known_or_made(all_, device,
                         [&] { return make("all/" + std::to_string(all_.size()), device, rank_, size_, timeout); });
}

void Communicators::connect(c10::DeviceIndex device, std::chrono::milliseconds timeout) {
    connected_ = all(device, timeout) != nullptr;
}

CommunicatorPtr Communicators::pair(c10::DeviceIndex device, int peer, std::chrono::milliseconds timeout) {
    if (connected_) {
        return all(device, timeout);
    }
    return known_or_made(pairs_, std::pair(device, peer), [&] {
        int uses = 0;  // devices that this pair has used before
        for (const auto& [place, made] : pairs_) {
            uses += place.second == peer ? 1 : 0;
        }
        const int low = std::min(rank_, peer);
        const int high = std::max(rank_, peer);
        const std::string key = "pair/" + std::to_string(low) + "/" + std::to_string(high) + "/" + std::to_string(uses);
        return make(key, device, rank_ == low ? 0 : 1, peer == rank_ ? 1 : 2, timeout);
    });
}

// At once: to end one may wait for the device, on which another one's work waits for ever.
void Communicators::abort() {
    std::vector<std::thread> threads;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        aborted_ = true;
        for_each_made([&](const CommunicatorPtr& made) { threads.emplace_back([made] { made->abort(); }); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

void Communicators::leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for_each_made([](const CommunicatorPtr& made) { made->leave(); });
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
