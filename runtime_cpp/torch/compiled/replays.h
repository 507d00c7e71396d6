// The recordings of a program: which one serves a run, and whether another is made.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "export.h"
#include "recording.h"

namespace dipu::compiled {

// What a program does with an argument.
enum class ArgumentUse {
    kRead,
    kHeld,     // reads; a parameter or buffer, which lies there in other runs too
    kWritten,  // and so never a copy
};

// A recording has memory of its own for results; one whose results somebody holds serves no run until they are let go. The
// first run with some sizes and numbers is done as it is, as functions make plans and handles then. Arguments that are held or
// results of recordings stay where they are, as do those that the last run had there; others are copied.
class DIPU_API Replays {
public:
    Replays(c10::DeviceIndex device, std::vector<ArgumentUse> uses) : device_(device), uses_(std::move(uses)) {}

    // Whether the vendor's device records streams.
    static bool are_served();

    // The one for a run; null where it is done otherwise.
    Recording* find(const RunPlaces& run);
    // One to be filled, if the run that found none is to be recorded. Throws torch's OutOfMemoryError.
    std::unique_ptr<Recording> begin(const RunPlaces& run);
    Recording& add(std::unique_ptr<Recording> recording);
    // From now on nothing more is recorded; a warning says why.
    void refuse(std::string reason);

    int64_t recorded() const { return static_cast<int64_t>(recordings_.size()); }
    // Runs that one launch did, and those that were put on the stream instruction by instruction.
    int64_t launched() const { return launched_; }
    int64_t issued() const { return issued_; }
    void count(bool launched) { ++(launched ? launched_ : issued_); }
    // Why nothing is recorded any more; empty while it is.
    const std::string& refusal() const { return refusal_; }

private:
    static constexpr std::size_t kMost = 16;
    static constexpr std::size_t kMostAlike = 3;  // whose results are held
    static constexpr std::size_t kMostMet = 64;

    bool is_new(const RunPlaces& run);
    void notice_moves(const RunPlaces& run);

    c10::DeviceIndex device_;
    std::vector<ArgumentUse> uses_;
    std::list<std::unique_ptr<Recording>> recordings_;  // the latest first
    std::list<std::vector<int64_t>> met_;               // numbers of runs, the latest first
    std::vector<char*> last_;  // where the arguments of the last run without a recording were
    std::vector<bool> moved_;  // the arguments that are copied
    int64_t launched_ = 0, issued_ = 0;
    std::string refusal_;
};

}  // namespace dipu::compiled
