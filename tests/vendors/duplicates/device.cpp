#include "host_device.hpp"
