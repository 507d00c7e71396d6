// Tests of standalone, with droplet (and the operators of operators.cpp) behind it.
#include "standalone.h"

#include <diopi/diopirt_ext.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../../../runtime_cpp/contract/address_sanitizer.h"
#include "../droplet/check.h"

namespace {

const char* library = nullptr;  // from the command line

template <class Function>
Function* symbol(const char* name) {
    auto* function = reinterpret_cast<Function*>(standalone_symbol(name));
    CHECK(function != nullptr);
    return function;
}

// A loaded library and a context on it.
class Session {
public:
    Session() {
        CHECK(standalone_load(library) == 0);
        ctx = standalone_context_create();
        CHECK(ctx != nullptr);
    }
    ~Session() { CHECK(standalone_context_destroy(ctx) == 0); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    diopiContextHandle_t ctx = nullptr;
};

template <class T>
diopiTensorHandle_t device_tensor(const std::vector<T>& values, diopiDtype_t dtype) {
    const auto count = static_cast<int64_t>(values.size());
    diopiTensorHandle_t th = standalone_tensor_create(&count, nullptr, 1, 0, count, dtype, diopi_device);
    CHECK(th != nullptr);
    CHECK(standalone_tensor_write(th, values.data(), values.size() * sizeof(T)) == 0);
    return th;
}

template <class T>
std::vector<T> values_of(diopiConstTensorHandle_t th) {
    size_t bytes = 0;
    CHECK(diopiGetTensorStorageNbytes(th, &bytes) == diopiSuccess);
    std::vector<T> values(bytes / sizeof(T));
    CHECK(standalone_tensor_read(th, values.data(), bytes) == 0);
    return values;
}

void nothing_works_before_loading() {
    CHECK(standalone_context_create() == nullptr);
    CHECK_SAYS(standalone_last_error(), "standalone_load");
    CHECK(standalone_load("/nowhere/libdiopi_impl.so") != 0);
    CHECK_SAYS(standalone_last_error(), "cannot be opened");
    CHECK(standalone_load(library) == 0);
    CHECK(standalone_load(library) == 0);
    CHECK(standalone_load("/nowhere/libdiopi_impl.so") != 0);
    CHECK_SAYS(standalone_last_error(), "in another process");
    CHECK(standalone_symbol("diopiNoSuchFunction") == nullptr);
    CHECK_SAYS(standalone_last_error(), "has no function 'diopiNoSuchFunction'");
    CHECK(std::string(symbol<const char*()>("diopiGetVendorName")()) == "droplet");
}

void a_tensor_says_what_it_is() {
    const Session session;
    const int64_t sizes[] = {2, 3};
    const int64_t strides[] = {1, 4};
    CHECK(standalone_tensor_create(sizes, strides, 2, 5, 14, diopi_dtype_float32, diopi_device) == nullptr);
    CHECK_SAYS(standalone_last_error(), "too small");
    diopiTensorHandle_t th = standalone_tensor_create(sizes, strides, 2, 5, 15, diopi_dtype_float16, diopi_device);
    CHECK(th != nullptr);
    diopiSize_t size = {};
    diopiSize_t stride = {};
    CHECK(diopiGetTensorShape(th, &size) == diopiSuccess && size.len == 2 && size.data[1] == 3);
    CHECK(diopiGetTensorStride(th, &stride) == diopiSuccess && stride.len == 2 && stride.data[1] == 4);
    diopiDtype_t dtype = diopi_dtype_unsupported;
    CHECK(diopiGetTensorDtype(th, &dtype) == diopiSuccess && dtype == diopi_dtype_float16);
    diopiDevice_t device = diopi_host;
    CHECK(diopiGetTensorDevice(th, &device) == diopiSuccess && device == diopi_device);
    diopiDeviceIndex_t index = -1;
    CHECK(diopiGetTensorDeviceIndex(th, &index) == diopiSuccess && index == 0);
    int64_t number = 0;
    CHECK(diopiGetTensorNumel(th, &number) == diopiSuccess && number == 6);
    CHECK(diopiGetTensorElemSize(th, &number) == diopiSuccess && number == 2);
    CHECK(diopiGetTensorStorageOffset(th, &number) == diopiSuccess && number == 5);
    size_t bytes = 0;
    CHECK(diopiGetTensorStorageNbytes(th, &bytes) == diopiSuccess && bytes == 30);
    void* storage = nullptr;
    void* data = nullptr;
    CHECK(diopiGetTensorStoragePtr(th, &storage) == diopiSuccess);
    CHECK(diopiGetTensorData(th, &data) == diopiSuccess);
    CHECK(static_cast<char*>(data) - static_cast<char*>(storage) == 10);
    bool sparse = true;
    CHECK(diopiIsTensorSparse(th, &sparse) == diopiSuccess && !sparse);
    diopiConstTensorHandle_t part = nullptr;
    CHECK(diopiGetTensorValues(th, &part) == diopiNoImplement);
    CHECK(diopiGetTensorNumel(nullptr, &number) == diopiErrorOccurred);
    CHECK(standalone_tensor_destroy(th) == 0);
    CHECK(standalone_tensor_create(sizes, nullptr, 2, 0, 6, 77, diopi_device) == nullptr);
    CHECK_SAYS(standalone_last_error(), "77 is not a dtype");
}

void fresh_memory_is_not_a_number() {
    const Session session;
    const int64_t count = 3;
    for (const int device : {diopi_host, diopi_device}) {
        diopiTensorHandle_t th = standalone_tensor_create(&count, nullptr, 1, 0, count, diopi_dtype_float32, device);
        for (const float value : values_of<float>(th)) CHECK(std::isnan(value));
        CHECK(standalone_tensor_destroy(th) == 0);
    }
}

void fresh_memory_is_of_the_byte_that_was_set() {
    const Session session;
    const auto fresh = [&session](int64_t count) {
        diopiTensorHandle_t th = nullptr;
        CHECK(diopiRequireBuffer(session.ctx, &th, count, diopi_device) == diopiSuccess);
        return th;
    };
    for (const int byte : {0x00, 0x3C, 0xFF}) {
        CHECK(standalone_set_fresh(byte) == 0);
        for (int round = 0; round < 2; ++round) {  // also where a context hands out what it got back
            diopiTensorHandle_t th = fresh(3);
            CHECK((values_of<unsigned char>(th) == std::vector<unsigned char>(3, static_cast<unsigned char>(byte))));
            CHECK(standalone_tensor_write(th, "abc", 3) == 0);
            CHECK(standalone_tensor_check_guards(th) == 0);
            CHECK(diopiReturnTensor(session.ctx, th) == diopiSuccess);
        }
        fresh(3);
        CHECK(standalone_context_check_guards(session.ctx) == 0);
        CHECK(standalone_context_reset(session.ctx) == 0);
    }
    CHECK(standalone_set_fresh(256) != 0);
    CHECK_SAYS(standalone_last_error(), "from 0 to 255");
    CHECK(standalone_set_fresh(-1) != 0);
}

void an_operator_runs_on_the_device() {
    const Session session;
    const auto scale =
        symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, double)>(
            "diopiTestScale");
    diopiTensorHandle_t x = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    diopiTensorHandle_t y = device_tensor<float>({0, 0, 0}, diopi_dtype_float32);
    CHECK(scale(session.ctx, y, x, 2.5) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
    CHECK((values_of<float>(y) == std::vector<float>{2.5f, 5.0f, 7.5f}));
    CHECK(scale(session.ctx, nullptr, x, 1) == diopiErrorOccurred);
    CHECK_SAYS(standalone_last_error(), "null handle");
    CHECK(standalone_tensor_destroy(x) == 0);
    CHECK(standalone_tensor_destroy(y) == 0);
}

void required_tensors_are_taken_back() {
    const Session session;
    const auto count = symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t*, int64_t)>("diopiTestCount");
    const auto read_back =
        symbol<diopiError_t(diopiContextHandle_t, diopiConstTensorHandle_t, int64_t*)>("diopiTestReadBack");
    diopiTensorHandle_t out = nullptr;
    void* first = nullptr;
    void* second = nullptr;
    CHECK(count(session.ctx, &out, 4) == diopiSuccess);
    CHECK((values_of<int64_t>(out) == std::vector<int64_t>{0, 1, 2, 3}));
    CHECK(diopiGetTensorData(out, &first) == diopiSuccess);
    int64_t value = -1;
    CHECK(read_back(session.ctx, out, &value) == diopiSuccess && value == 0);
    CHECK(standalone_context_check_guards(session.ctx) == 0);
    CHECK(standalone_context_reset(session.ctx) == 0);
    CHECK(count(session.ctx, &out, 4) == diopiSuccess);
    CHECK(diopiGetTensorData(out, &second) == diopiSuccess);
    CHECK((first == second) != diopi::kAddressSanitizer);  // memory that was given back rests there
    CHECK(count(session.ctx, &out, 4) == diopiSuccess);
    CHECK(diopiGetTensorData(out, &second) == diopiSuccess);
    CHECK(first != second);
    CHECK(count(session.ctx, &out, 0) == diopiSuccess);
    CHECK(values_of<int64_t>(out).empty());
    CHECK(diopiRequireBuffer(session.ctx, &out, int64_t{1} << 50, diopi_device) == diopiErrorOccurred);
    CHECK_SAYS(standalone_last_error(), "memory");
}

// AddressSanitizer ends the process instead: see memory_faults below.
void writes_outside_are_caught() {
    if (diopi::kAddressSanitizer) return;
    const Session session;
    const auto write_at = symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t, int64_t)>("diopiTestWriteAt");
    for (const int64_t byte : {-1, 12}) {
        diopiTensorHandle_t th = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
        CHECK(standalone_tensor_check_guards(th) == 0);
        CHECK(write_at(session.ctx, th, 11) == diopiSuccess);
        CHECK(standalone_tensor_check_guards(th) == 0);
        CHECK(write_at(session.ctx, th, byte) == diopiSuccess);
        CHECK(standalone_tensor_check_guards(th) != 0);
        CHECK_SAYS(standalone_last_error(),
                   byte < 0 ? "1 bytes before a tensor of 12 bytes" : "1 bytes behind a tensor of 12");
        CHECK(standalone_tensor_destroy(th) == 0);
    }
    diopiTensorHandle_t buffer = nullptr;
    CHECK(diopiRequireBuffer(session.ctx, &buffer, 10, diopi_device) == diopiSuccess);
    CHECK(write_at(session.ctx, buffer, 10) == diopiSuccess);
    CHECK(standalone_context_reset(session.ctx) == 0);
    CHECK(standalone_context_check_guards(session.ctx) != 0);
}

// Faults that AddressSanitizer must end the process for. Without it most of them go unseen.
template <int64_t byte>
void read_at() {
    const Session session;
    const auto read =
        symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t, int64_t, unsigned char*)>("diopiTestReadAt");
    diopiTensorHandle_t before = device_tensor<char>(std::vector<char>(100000), diopi_dtype_int8);
    diopiTensorHandle_t th = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    diopiTensorHandle_t behind = device_tensor<char>(std::vector<char>(100000), diopi_dtype_int8);
    unsigned char value = 0;
    CHECK(read(session.ctx, th, byte, &value) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
    for (diopiTensorHandle_t each : {before, th, behind}) CHECK(standalone_tensor_destroy(each) == 0);
}

template <int64_t byte>
void write_at() {
    const Session session;
    const auto write = symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t, int64_t)>("diopiTestWriteAt");
    diopiTensorHandle_t th = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    CHECK(write(session.ctx, th, byte) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
    CHECK(standalone_tensor_destroy(th) == 0);
}

template <bool writes, diopiDevice_t device>
void use_after_return() {
    const Session session;
    const auto use = symbol<diopiError_t(diopiContextHandle_t, bool, diopiDevice_t)>("diopiTestUseReturned");
    CHECK(use(session.ctx, writes, device) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
}

void read_after_free() {
    const Session session;
    const auto read = symbol<diopiError_t(diopiContextHandle_t, void*, unsigned char*)>("diopiTestReadMemory");
    diopiTensorHandle_t th = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    void* data = nullptr;
    CHECK(diopiGetTensorData(th, &data) == diopiSuccess);
    CHECK(standalone_tensor_destroy(th) == 0);
    // The next one of the size must not take the memory.
    diopiTensorHandle_t next = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    unsigned char value = 0;
    CHECK(read(session.ctx, data, &value) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
    CHECK(standalone_tensor_destroy(next) == 0);
}

void generators_keep_their_state() {
    const Session session;
    diopiGeneratorHandle_t generator = standalone_generator_create(42);
    uint64_t seed = 0;
    uint64_t offset = 9;
    CHECK(diopiGeneratorGetSeedAndOffset(generator, &seed, &offset) == diopiSuccess && seed == 42 && offset == 0);
    CHECK(diopiGeneratorSetSeedAndOffset(generator, 42, 8) == diopiSuccess);
    diopiTensorHandle_t state = nullptr;
    CHECK(diopiGeneratorGetState(session.ctx, generator, &state) == diopiSuccess);
    CHECK(diopiGeneratorSetSeedAndOffset(generator, 1, 1) == diopiSuccess);
    CHECK(diopiGeneratorSetState(generator, state) == diopiSuccess);
    CHECK(diopiGeneratorGetSeedAndOffset(generator, &seed, &offset) == diopiSuccess && seed == 42 && offset == 8);
    diopiTensorHandle_t other = device_tensor<float>({1}, diopi_dtype_float32);
    CHECK(diopiGeneratorSetState(generator, other) == diopiErrorOccurred);
    CHECK(standalone_tensor_destroy(other) == 0);
    CHECK(standalone_generator_destroy(generator) == 0);
}

void devices_can_be_chosen() {
    CHECK(standalone_load(library) == 0);
    CHECK(standalone_set_device(7) != 0);
    CHECK_SAYS(standalone_last_error(), "there is no device 7");
    CHECK(standalone_set_device(1) == 0);
    const Session session;
    diopiTensorHandle_t th = device_tensor<float>({1}, diopi_dtype_float32);
    diopiDeviceIndex_t index = -1;
    CHECK(diopiGetTensorDeviceIndex(th, &index) == diopiSuccess && index == 1);
    CHECK(diopiGetCurrentDeviceIndex(&index) == diopiSuccess && index == 1);
    CHECK(standalone_tensor_destroy(th) == 0);
}

uint64_t used_memory() {
    uint64_t bytes = 0;
    CHECK(standalone_device_memory(&bytes) == 0);
    return bytes;
}

void memory_in_use_is_counted() {
    CHECK(standalone_device_memory(nullptr) != 0);
    CHECK_SAYS(standalone_last_error(), "null");
    const Session session;
    const uint64_t before = used_memory();
    diopiTensorHandle_t th = device_tensor<float>(std::vector<float>(100000), diopi_dtype_float32);
    CHECK(used_memory() >= before + 400000);
    CHECK(standalone_tensor_destroy(th) == 0);
    CHECK(used_memory() == before);
    void* kept = nullptr;
    CHECK(symbol<int(void**, size_t)>("tangMalloc")(&kept, 5000) == 0);  // by a caller
    CHECK(used_memory() >= before + 5000);
    CHECK(symbol<int(void*)>("tangFree")(kept) == 0);
    CHECK(used_memory() == before);
}

void memory_in_use_may_be_unknown() {
    CHECK(standalone_load(library) == 0);
    uint64_t bytes = 7;
    CHECK(standalone_device_memory(&bytes) != 0);
    CHECK_SAYS(standalone_last_error(), "has no device function 'memory_info'");
    CHECK(bytes == 7);
}

// The message says what the kernel was doing and what the chip reports.
void a_device_failure_has_words() {
    const Session session;
    const auto scale =
        symbol<diopiError_t(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, double)>(
            "diopiTestScale");
    diopiTensorHandle_t x = device_tensor<float>({1, 2, 3}, diopi_dtype_float32);
    using SetFaultPlan = int(const char*);
    CHECK(symbol<SetFaultPlan>("tangSetFaultPlan")("launch:1") == 0);
    const diopiError_t status = scale(session.ctx, x, x, 2);
    if (status != diopiSuccess) {
        const std::string message = symbol<const char*()>("diopiGetLastErrorString")();
        CHECK_SAYS(message.c_str(), "the scaling failed on the device: device 0 is in error");
    }
    CHECK(standalone_context_synchronize(session.ctx) != 0);
    CHECK_SAYS(standalone_last_error(), "on demand");
    CHECK(standalone_tensor_destroy(x) == 0);
}

template <class T>
void check_gemm(const Session& session, diopiDtype_t dtype, bool trans_a, bool trans_b, double beta) {
    using Gemm = diopiError_t(diopiContextHandle_t, int, bool, bool, int64_t, int64_t, int64_t, double,
                              diopiConstTensorHandle_t, int64_t, diopiConstTensorHandle_t, int64_t, double,
                              diopiTensorHandle_t, int64_t, int64_t, const int64_t*);
    constexpr int64_t m = 5, n = 7, k = 4, batch = 3, gap = 2;
    const int64_t lda = (trans_a ? m : k) + gap;
    const int64_t ldb = (trans_b ? k : n) + gap;
    const int64_t ldc = n + gap;
    const int64_t strides[] = {lda * (trans_a ? k : m), 0, ldc * m};  // b is the same in each product
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto filled = [&](int64_t count) {
        std::vector<T> values(static_cast<size_t>(count));
        for (T& value : values) value = static_cast<T>(uniform(random));
        return values;
    };
    const std::vector<T> a = filled(strides[0] * batch);
    const std::vector<T> b = filled(ldb * (trans_b ? n : k));
    // With beta 0 the old values must not count, whatever they are.
    const std::vector<T> c =
        beta == 0 ? std::vector<T>(static_cast<size_t>(strides[2] * batch), std::numeric_limits<T>::quiet_NaN())
                  : filled(strides[2] * batch);
    diopiTensorHandle_t handles[] = {device_tensor(a, dtype), device_tensor(b, dtype), device_tensor(c, dtype)};
    CHECK(symbol<Gemm>("diopiTestGemm")(session.ctx, dtype, trans_a, trans_b, m, n, k, 1.5, handles[0], lda, handles[1],
                                        ldb, beta, handles[2], ldc, batch, strides) == diopiSuccess);
    CHECK(standalone_context_synchronize(session.ctx) == 0);
    const std::vector<T> result = values_of<T>(handles[2]);
    for (int64_t i = 0; i < batch * m * n; ++i) {
        const int64_t row = i / n % m, column = i % n, matrix = i / (m * n);
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
            const T x = a[static_cast<size_t>(matrix * strides[0] + (trans_a ? p * lda + row : row * lda + p))];
            const T y = b[static_cast<size_t>(trans_b ? column * ldb + p : p * ldb + column)];
            sum += static_cast<double>(x) * static_cast<double>(y);
        }
        const auto at = static_cast<size_t>(matrix * strides[2] + row * ldc + column);
        const double expected = 1.5 * sum + (beta == 0 ? 0 : beta * static_cast<double>(c[at]));
        CHECK(std::abs(static_cast<double>(result[at]) - expected) < 1e-5);
    }
    for (diopiTensorHandle_t handle : handles) CHECK(standalone_tensor_destroy(handle) == 0);
}

void matrix_products_are_right() {
    const Session session;
    for (const bool trans_a : {false, true}) {
        for (const bool trans_b : {false, true}) {
            for (const double beta : {0.0, 0.5}) {
                check_gemm<float>(session, diopi_dtype_float32, trans_a, trans_b, beta);
                check_gemm<double>(session, diopi_dtype_float64, trans_a, trans_b, beta);
            }
        }
    }
}

// Also run with vendors of the two classic forms.
void tensors_reach_the_device_and_return() {
    const Session session;
    diopiTensorHandle_t th = device_tensor<int32_t>({4, 5, 6}, diopi_dtype_int32);
    CHECK((values_of<int32_t>(th) == std::vector<int32_t>{4, 5, 6}));
    CHECK(standalone_tensor_check_guards(th) == 0);
    CHECK(standalone_tensor_write(th, "", 13) != 0);
    CHECK(standalone_tensor_destroy(th) == 0);
}

void loading_fails() {
    CHECK(standalone_load(library) != 0);
    std::printf("%s\n", standalone_last_error());
}

constexpr NamedTest kTests[] = {
    {"nothing_works_before_loading", nothing_works_before_loading},
    {"a_tensor_says_what_it_is", a_tensor_says_what_it_is},
    {"fresh_memory_is_not_a_number", fresh_memory_is_not_a_number},
    {"fresh_memory_is_of_the_byte_that_was_set", fresh_memory_is_of_the_byte_that_was_set},
    {"an_operator_runs_on_the_device", an_operator_runs_on_the_device},
    {"required_tensors_are_taken_back", required_tensors_are_taken_back},
    {"writes_outside_are_caught", writes_outside_are_caught},
    {"read_before", read_at<-1>},
    {"read_behind", read_at<12>},
    {"read_600_before", read_at<-600>},
    {"read_600_behind", read_at<612>},
    {"read_40_kb_before", read_at<-40960>},
    {"read_40_kb_behind", read_at<40972>},
    {"write_before", write_at<-1>},
    {"write_behind", write_at<12>},
    {"write_600_behind", write_at<612>},
    {"read_after_return", use_after_return<false, diopi_device>},
    {"write_after_return", use_after_return<true, diopi_device>},
    {"read_host_memory_after_return", use_after_return<false, diopi_host>},
    {"read_after_free", read_after_free},
    {"generators_keep_their_state", generators_keep_their_state},
    {"devices_can_be_chosen", devices_can_be_chosen},
    {"memory_in_use_is_counted", memory_in_use_is_counted},
    {"memory_in_use_may_be_unknown", memory_in_use_may_be_unknown},
    {"a_device_failure_has_words", a_device_failure_has_words},
    {"matrix_products_are_right", matrix_products_are_right},
    {"tensors_reach_the_device_and_return", tensors_reach_the_device_and_return},
    {"loading_fails", loading_fails},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) library = argv[2];
    return run_named_test(kTests, argc, argv);
}
