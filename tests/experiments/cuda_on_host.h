// As much of CUDA as experiments/_cifar_kernels.cu uses, on the host: threads of a program are coroutines that take
// turns, so that barriers and what a warp does together (matrices, products, shuffles) mean what they do on a GPU.
// Shared memory begins as what is not a number: whoever reads what nobody wrote finds out.

#include <math.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define SHARED_MEMORY(name) uint4 *name = host::shared.data()
#define LAUNCH(kernel, programs, threads, bytes, stream, given) \
    host::launch(programs, threads, bytes, [&] { kernel(given); })

struct uint2 { uint32_t x, y; };
struct alignas(16) uint4 { uint32_t x, y, z, w; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }

struct { int x; } threadIdx, blockIdx;
using cudaStream_t = void *;
constexpr int cudaFuncAttributeMaxDynamicSharedMemorySize = 0;
template <typename Kernel> void cudaFuncSetAttribute(Kernel, int, int) {}
inline int cudaGetLastError() { return 0; }

namespace host {
struct Barrier {
    int waiting = 0, passed = 0;
};
struct Warp {
    Barrier barrier;
    int turn[32] = {};
    uint32_t given[2][32][6];      // what each lane brings to something done together; twice, since lanes run ahead
    const uint16_t *rows[2][32];
};
inline std::vector<uint4> shared;
inline std::vector<ucontext_t> threads;
inline std::vector<bool> alive;
inline std::vector<Warp> warps;
inline Barrier block;
inline ucontext_t outside;
inline const std::function<void()> *body;

inline void pass_on() {
    const int self = threadIdx.x, count = static_cast<int>(threads.size());
    for (int step = 1; step <= count; ++step) {
        const int next = (self + step) % count;
        if (!alive[next]) continue;
        if (next == self) return;
        threadIdx.x = next;
        swapcontext(&threads[self], &threads[next]);
        threadIdx.x = self;
        return;
    }
    setcontext(&outside);
}

inline void wait(Barrier &barrier, int count) {
    const int passed = barrier.passed;
    if (++barrier.waiting == count) {
        barrier.waiting = 0;
        ++barrier.passed;
        return;
    }
    while (barrier.passed == passed) pass_on();
}

inline void run() {
    (*body)();
    alive[threadIdx.x] = false;
    pass_on();
}

inline void launch(int programs, int count, int bytes, const std::function<void()> &work) {
    constexpr size_t STACK = 1 << 16;
    std::vector<char> stacks(STACK * count);
    body = &work;
    threads.resize(count);
    for (blockIdx.x = 0; blockIdx.x < programs; ++blockIdx.x) {
        shared.assign((bytes + 15) / 16, {~0u, ~0u, ~0u, ~0u});
        alive.assign(count, true);
        warps.assign(count / 32, {});
        block = {};
        for (int i = 0; i < count; ++i) {
            getcontext(&threads[i]);
            threads[i].uc_stack.ss_sp = stacks.data() + i * STACK;
            threads[i].uc_stack.ss_size = STACK;
            makecontext(&threads[i], run, 0);
        }
        threadIdx.x = 0;
        swapcontext(&outside, &threads[0]);
    }
}

// What one lane gives is there for all lanes to see.
inline Warp &together(const uint32_t *given, int count, const uint16_t *row, int &turn) {
    Warp &warp = warps[threadIdx.x / 32];
    const int lane = threadIdx.x % 32;
    turn = warp.turn[lane]++ % 2;
    for (int i = 0; i < count; ++i) warp.given[turn][lane][i] = given[i];
    warp.rows[turn][lane] = row;
    wait(warp.barrier, 32);
    return warp;
}
}  // namespace host

inline void __syncthreads() { host::wait(host::block, static_cast<int>(host::threads.size())); }

inline float __uint_as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

inline uint32_t pair(float first, float second) {
    const auto rounded = [](float value) { return (bits_of(value) + 0x7fffu + (bits_of(value) >> 16 & 1)) >> 16; };
    return rounded(first) | rounded(second) << 16;
}

inline float half_of(uint32_t both, int which) { return __uint_as_float(which ? both & 0xffff0000u : both << 16); }

template <typename T> T __ldg(const T *from) { return *from; }
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
inline void atomicAdd(float *to, float value) { *to += value; }
inline void atomicAdd(unsigned long long *to, unsigned long long value) { *to += value; }
inline void atomicAdd(float2 *to, float2 value) { to->x += value.x, to->y += value.y; }
inline void atomicAdd(float4 *to, float4 value) {
    to->x += value.x, to->y += value.y, to->z += value.z, to->w += value.w;
}

inline void send(uint16_t *to, const uint16_t *from) { memcpy(to, from, 16); }
inline void arrive() {}
inline void expect(const uint16_t *) {}

inline float __shfl_xor_sync(uint32_t, float value, int apart) {
    int turn;
    const uint32_t bits = bits_of(value);
    const host::Warp &warp = host::together(&bits, 1, nullptr, turn);
    return __uint_as_float(warp.given[turn][threadIdx.x % 32 ^ apart][0]);
}

// Four matrices of 8 x 8; lane i has row i % 8 of matrix i / 8, and gets elements 2 (i % 4), + 1 of row i / 4.
template <bool TRANSPOSED> void load_matrices(uint32_t (&to)[4], const uint16_t *row) {
    int turn;
    const host::Warp &warp = host::together(nullptr, 0, row, turn);
    const int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
        const uint16_t *const *rows = warp.rows[turn] + 8 * i;
        const uint32_t one = TRANSPOSED ? rows[c][r] : rows[r][c], two = TRANSPOSED ? rows[c + 1][r] : rows[r][c + 1];
        to[i] = one | two << 16;
    }
}

// d += a b, of sizes 16 x 16 and 16 x 8, spread over the lanes as the PTX manual says.
inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    int turn;
    const uint32_t given[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const host::Warp &warp = host::together(given, 6, nullptr, turn);
    const auto &lanes = warp.given[turn];
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; ++k)
            d[i] += half_of(lanes[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2) *
                    half_of(lanes[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
    }
}
