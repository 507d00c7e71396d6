// Makes and maps memory without a name: a file in memory, found through the process that made it.
#include "segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "runtime/error.h"

namespace droplet {
namespace {

// What an identifier holds.
struct Origin {
    uint64_t host;  // the network namespace
    int32_t process;
    int32_t file;
};

static_assert(sizeof(Origin) <= TCL_UNIQUE_ID_BYTES, "an identifier has room for it");

Origin origin_of(const tclUniqueId_t& id) {
    Origin origin = {};
    std::memcpy(&origin, id.bytes, sizeof origin);
    return origin;
}

uint64_t this_host() {
    struct stat status = {};
    return stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

[[noreturn]] void fail(const char* what) {
    throw Error(tangErrorInitialization, std::string(what) + ": " + std::strerror(errno));
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* time) {
    return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, time, nullptr, 0);
}

bool has_ended(int process) {
    pollfd query = {process, POLLIN, 0};
    return process >= 0 && poll(&query, 1, 0) == 1;
}

int process_file(int32_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

}  // namespace

tclUniqueId_t Segment::make_id() {
    const int file = memfd_create("tcl", MFD_CLOEXEC);
    if (file < 0) fail("droplet could not make memory that ranks share");
    const Origin origin = {this_host(), getpid(), file};
    tclUniqueId_t id = {};
    std::memcpy(id.bytes, &origin, sizeof origin);
    return id;
}

bool Segment::reaches(const tclUniqueId_t& id) { return origin_of(id).host == this_host(); }

Segment::Segment(const tclUniqueId_t& id, int32_t ranks, int32_t rank) : ranks_(ranks), rank_(rank) {
    require(ranks > 0 && rank >= 0 && rank < ranks, tangErrorInvalidValue,
            "tclCommInitRank: a rank is at least 0, and less than the number of ranks");
    const Origin origin = origin_of(id);
    require(reaches(id), tangErrorInvalidDevice,
            "tclCommInitRank: the ranks run on several hosts (or network namespaces), which droplet's fabric does not "
            "join");
    const std::string path = "/proc/" + std::to_string(origin.process) + "/fd/" + std::to_string(origin.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    require(file >= 0, tangErrorRemote,
            "tclCommInitRank: the process that made the identifier has ended, or is another user's");
    const size_t places = (sizeof(Place) * static_cast<size_t>(ranks) + 4095) / 4096 * 4096;
    const size_t channels = static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
    map(file, places + sizeof(Channel) * channels);
    places_ = static_cast<Place*>(memory_);
    channels_ = reinterpret_cast<Channel*>(static_cast<unsigned char*>(memory_) + places);
    try {
        meet(id);
    } catch (...) {
        leave();
        munmap(memory_, bytes_);
        throw;
    }
    if (origin.process == getpid()) close(origin.file);
}

Segment::~Segment() {
    leave();
    for (const int process : processes_) {
        if (process >= 0) close(process);
    }
    munmap(memory_, bytes_);
}

void Segment::map(int file, size_t bytes) {
    struct stat status = {};
    const bool sized =
        fstat(file, &status) == 0 && (status.st_size == 0 || status.st_size == static_cast<off_t>(bytes));
    const bool grown = sized && ftruncate(file, static_cast<off_t>(bytes)) == 0;
    memory_ = grown ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    require(sized, tangErrorInvalidValue, "tclCommInitRank: the ranks do not agree how many they are");
    if (memory_ == MAP_FAILED) fail("droplet could not map memory that ranks share");
    bytes_ = bytes;
}

void Segment::meet(const tclUniqueId_t& id) {
    uint32_t before = 0;
    require(places_[rank_].state.compare_exchange_strong(before, 1), tangErrorInvalidValue,
            "tclCommInitRank: another caller has this rank already");
    places_[rank_].process.store(getpid());
    const int maker = process_file(origin_of(id).process);
    processes_.assign(static_cast<size_t>(ranks_), -1);
    for (int32_t peer = 0; peer < ranks_; ++peer) ring(peer);
    for (int32_t peer = 0; peer < ranks_; ++peer) {
        for (;;) {
            const uint32_t seen = rung();
            if (places_[peer].process.load() != 0) break;
            if (has_ended(maker)) {
                close(maker);
                throw Error(tangErrorRemote, "tclCommInitRank: the process that made the identifier has ended");
            }
            wait(seen, std::chrono::milliseconds(20));
        }
        const int32_t process = places_[peer].process.load();
        if (process != getpid()) processes_[static_cast<size_t>(peer)] = process_file(process);
    }
    if (maker >= 0) close(maker);
}

void Segment::ring(int32_t peer) {
    std::atomic<uint32_t>& bell = places_[peer].bell;
    bell.fetch_add(1, std::memory_order_release);
    futex(bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Segment::wait(uint32_t seen, std::chrono::microseconds time) {
    const timespec limit = {time.count() / 1000000, time.count() % 1000000 * 1000};
    futex(places_[rank_].bell, FUTEX_WAIT, seen, &limit);
}

bool Segment::gone(int32_t peer) const {
    return places_[peer].state.load(std::memory_order_acquire) == 2 || has_ended(processes_[static_cast<size_t>(peer)]);
}

void Segment::leave() {
    places_[rank_].state.store(2, std::memory_order_release);
    for (int32_t peer = 0; peer < ranks_; ++peer) ring(peer);
}

}  // namespace droplet
