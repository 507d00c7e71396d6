#include <cstdint>

typedef struct diopiSize_ {
    int64_t len;
    const int64_t* data;
} diopiSize_t;

typedef enum { diopi_host = 0, diopi_device = 1, diopi_most = 0x100000000 } diopiDevice_t;
