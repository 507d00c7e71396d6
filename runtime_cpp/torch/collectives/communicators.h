// The communicators of one process group: one for each device that a rank uses, and one for each pair of ranks that send.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/stream.h"
#include "table.h"

namespace dipu::collectives {

class Communicator;
using CommunicatorPtr = std::shared_ptr<Communicator>;

// A communicator with the stream that its work is on.
class Communicator {
public:
    Communicator(diopiCommHandle_t handle, const c10::Stream& stream) : handle_(handle), stream_(stream) {}
    ~Communicator() { leave(); }
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    // To be held while the vendor's functions get the handle: the communicator is not left, and aborted only when calls in it do not return.
    class Use {
    public:
        // Throws c10::Error when the communicator has been left or aborted.
        explicit Use(const CommunicatorPtr& communicator);
        ~Use();
        Use(Use&& other) noexcept = default;
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        Use& operator=(Use&&) = delete;

    private:
        CommunicatorPtr communicator_;
    };

    diopiCommHandle_t handle() const { return handle_; }
    const c10::Stream& stream() const { return stream_; }
    // To be called when its work has ended; works that are held longer do not keep it.
    void leave();
    // Ends its work at once, where the vendor can; it is of no more use then. From any thread.
    void abort();
    // The vendor's words for work that has failed; empty if none has.
    std::string failure();

private:
    // Lets no more uses begin, and waits for those that have; false when it was left already.
    bool end_uses(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;  // a call that asks may meet one that aborts
    std::condition_variable unused_;
    diopiCommHandle_t handle_;
    c10::Stream stream_;
    int uses_ = 0;
    bool left_ = false;
};

class Communicators {
public:
    // `store` is the group's alone.
    Communicators(c10::intrusive_ptr<c10d::Store> store, int rank, int size);

    // That of all ranks for a device of this one; waits for the others when it is asked for first. Null when a rank could not
    // take part, as on another host; why() says it then. Throws what the store throws when a rank is late.
    CommunicatorPtr all(c10::DeviceIndex device, std::chrono::milliseconds timeout);
    // That of this rank and another, in which the lower rank is 0; that of all ranks after connect().
    CommunicatorPtr pair(c10::DeviceIndex device, int peer, std::chrono::milliseconds timeout);

    // All messages go by the communicator of all ranks, which is made now.
    void connect(c10::DeviceIndex device, std::chrono::milliseconds timeout);
    // The place of a rank in what pair() gives for it.
    int place(int peer) const { return connected_ ? peer : peer < rank_ || peer == rank_ ? 0 : 1; }

    const std::string& why() const { return why_; }
    // Ends the work of all of them at once; they are of no more use, and no more are made.
    void abort();
    // Leaves all of them, whose work has ended.
    void leave();

private:
    // Adds what `make` gives to `known`, unless the group was aborted meanwhile.
    template <class Key, class Make>
    CommunicatorPtr known_or_made(std::map<Key, CommunicatorPtr>& known, const Key& key, const Make& make);
    // With the lock.
    template <class Fn>
    void for_each_made(const Fn& fn) {
        for (const auto& [device, made] : all_) {
            if (made) fn(made);
        }
        for (const auto& [place, made] : pairs_) {
            if (made) fn(made);
        }
    }
    CommunicatorPtr make(const std::string& key, c10::DeviceIndex device, int rank, int size,
                         std::chrono::milliseconds timeout);

    c10::intrusive_ptr<c10d::Store> store_;
    int rank_;
    int size_;
    std::mutex making_;  // while ranks meet, which may last
    std::mutex mutex_;  // of what follows, never while anybody waits
    bool aborted_ = false;
    std::map<c10::DeviceIndex, CommunicatorPtr> all_;
    std::map<std::pair<c10::DeviceIndex, int>, CommunicatorPtr> pairs_;
    std::string why_;
    std::atomic<bool> connected_ = false;
};

}  // namespace dipu::collectives
