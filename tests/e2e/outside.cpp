// Writes one byte behind a block of device memory when it is given an argument, else the last byte of it.
#include <tang_runtime.h>

namespace {

struct Store {
    void* block;
    size_t at;

    static void run(const void* args) {
        const Store store = *static_cast<const Store*>(args);
        static_cast<unsigned char*>(tangDeviceAddress(store.block))[store.at] = 1;
    }
};

}  // namespace

int main(int argc, char**) {
    constexpr size_t bytes = 100;
    void* block = nullptr;
    if (tangMalloc(&block, bytes) != tangSuccess) return 2;
    const Store store = {block, argc > 1 ? bytes : bytes - 1};
    const bool done = tangLaunch(nullptr, &Store::run, &store, sizeof store) == tangSuccess &&
                      tangDeviceSynchronize() == tangSuccess && tangFree(block) == tangSuccess;
    return done ? 0 : 2;
}
