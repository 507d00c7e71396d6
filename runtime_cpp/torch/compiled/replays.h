// What a program puts on its stream, recorded for the addresses that a run has, and done again when they come back.
#pragma once

#include <c10/core/Device.h>
#include <diopi/device.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "export.h"
#include "wrapper/context.h"

namespace dipu::compiled {

// Where a run finds its memory, the numbers that its symbols give, and its stream: what functions asked for while a run was
// recorded serves one stream at a time.
struct Places {
    const std::vector<char*>& addresses;
    const std::vector<int64_t>& numbers;
    diopiStreamHandle_t stream;
};

// Places that outlive their run.
struct KeptPlaces {
    std::vector<char*> addresses;
    std::vector<int64_t> numbers;
    diopiStreamHandle_t stream;

    explicit KeptPlaces(const Places& places)
        : addresses(places.addresses),
          numbers(places.numbers),
          stream(places.stream) {}
    bool operator==(const Places& other) const {
        return stream == other.stream && addresses == other.addresses && numbers == other.numbers;
    }
};

// Memory comes from the allocator's cache, which in a steady loop gives every run the same blocks: a run whose places were
// met before is recorded, and from then on one launch stands for all of its instructions. Nothing is copied for it. What
// the vendor's functions asked for while it was recorded is kept with the record.
class DIPU_API Replays {
public:
    // Puts the program's work on the stream of a context.
    using Issue = std::function<diopiError_t(diopiContextHandle_t)>;

    explicit Replays(c10::DeviceIndex device) : device_(device) {}
    ~Replays();
    Replays(const Replays&) = delete;
    Replays& operator=(const Replays&) = delete;

    // Whether the vendor's device records streams.
    static bool are_served();

    // One run on the context's stream: replayed, recorded, or issued as it is.
    diopiError_t run(const Places& places, diopiContextHandle_t context, const Issue& issue);

    int64_t recorded() const { return static_cast<int64_t>(records_.size()); }
    int64_t replayed() const { return replayed_; }
    // Why nothing is recorded any more; empty while it is.
    const std::string& refusal() const { return refusal_; }

private:
    static constexpr std::size_t kMostRecords = 16;  // each keeps memory of its own
    static constexpr std::size_t kMostMet = 64;

    struct Record {
        KeptPlaces places;
        diopiGraphHandle_t graph;
        std::forward_list<at::Tensor> kept;  // what functions asked for
    };

    bool met_before(const Places& places);
    // Null where something cannot be done again.
    const Record* recorded(const Places& places, const Issue& issue);

    c10::DeviceIndex device_;
    diopiStreamHandle_t stream_ = nullptr;  // for recording only
    std::list<Record> records_;
    std::list<KeptPlaces> met_;  // the latest first
    int64_t replayed_ = 0;
    std::string refusal_;
};

}  // namespace dipu::compiled
