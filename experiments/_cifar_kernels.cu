// A training step of the residual networks on CIFAR-10 in four launches a block, forward and backward together.
//
// A program has whole images in shared memory, with a border of zeros. Normalisation, rectifier and the way around a
// block are part of loading them, sums for the next normalisation part of writing; the gradients at a convolution's
// input and at its weights come from one reading of both. Activations are bf16, (pixels, channels) in memory; weights
// (outside, row, column, inside) are float32, sums over pixels integers (Sum). Products are those of the tensor cores
// (mma, 16 x 8 x 16). y is what a convolution gives, norm(y) what its normalisation makes of it.

#include <stdint.h>
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#define SHARED_MEMORY(name) extern __shared__ uint4 name[]
#define LAUNCH(kernel, programs, threads, bytes, stream, given) kernel<<<programs, threads, bytes, stream>>>(given)
#else
#include "cuda_on_host.h"  // the tests': the same programs without a GPU
#endif

// Warps of a program by its channels, 8 or 16, and programs of a multiprocessor on the way back through 32 channels, 2
// or 3. These are the fastest on an H200; other GPUs may differ (_cifar_speed.py measures them).
#ifndef WARPS_16
#define WARPS_16 16
#endif
#ifndef WARPS_32
#define WARPS_32 16  // on the way forth
#endif
#ifndef WARPS_64
#define WARPS_64 16
#endif
#ifndef TOGETHER_32
#define TOGETHER_32 2
#endif

constexpr int THREADS = 256;  // of a program, where W does not say how many warps there are
constexpr float EPS = 1e-5f, MOMENTUM = 0.1f;  // of the normalisation, as in torch
using Half = uint16_t;                         // a bf16 in memory
using Pair = uint32_t;                         // two of them, the first in the low half
using Sum = unsigned long long;                // in small units: the same in whatever order programs add to it, so that
constexpr float FORTH = 1048576.0f;            // a step is the same each time; as many units are 1 on the way forth
constexpr float BACK = 17592186044416.0f;      // and on the way back

struct Norm {
    const Sum *sums;  // of y and of its squares over all pixels
    const float *gamma, *beta;
    float *mean, *variance;  // running ones
};

struct Forward {  // y of one convolution, and of the next one: to = w * relu(norm(y) + skip)
    const float *x;  // images in place of y, for the first convolution
    int channel_step, pixel_step;
    const Half *y;
    Norm norm;
    const Half *skip;  // none inside a block
    Half *out;         // where its input goes, if anybody needs it
    const Half *w;
    Half *to;
    Sum *sums;
    int images, across, evaluating;  // across: skip has half the channels and twice the side
};

struct Head {
    const Half *y;
    Norm norm;
    const Half *skip;
    const float *w, *b;
    const int64_t *labels;
    float *loss, *logits, *to_w, *to_b;
    Half *g;
    Sum *found;
    int images, across, evaluating;
};

struct Backward {
    const Half *g, *y;  // the gradient at norm(y), where y = w * input
    Norm norm;
    const Sum *found;  // sums of g, and of g times norm(y) before gamma and beta
    const float *x;
    int channel_step, pixel_step;
    const Half *input;  // relu(norm(under)) if none is given
    const Half *under;  // y of the convolution before, and what is found at its norm
    Norm below;
    Sum *below_found;
    const Half *around;  // the gradient that comes around the block
    const Half *w;
    float *to_w, *to_gamma, *to_beta;
    Half *to;  // the gradient at norm(under)
    int images, across;
};

struct Prepare {  // kernels as bf16; those of the first convolution, for three channels, get zeros for thirteen more
    const float *from;
    Half *to;
    int count;  // of those that are made
};

#ifdef __CUDACC__
__device__ __forceinline__ Pair pair(float first, float second) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const Pair *>(&both);
}

template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(Pair (&to)[4], const Half *row) {
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const Pair (&a)[4], Pair b0, Pair b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Sixteen bytes on their way to shared memory, while other things go on; and wait for all of them.
__device__ __forceinline__ void send(Half *to, const Half *from) {
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void arrive() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A line of memory that will be read later may come nearer.
__device__ __forceinline__ void expect(const Half *at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }
#endif

__device__ __forceinline__ float low(Pair both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high(Pair both) { return __uint_as_float(both & 0xffff0000u); }

// Eight channels of a pixel as numbers, and back.
__device__ __forceinline__ void unpack(const uint4 &eight, float (&to)[8]) {
    const Pair pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) to[2 * i] = low(pairs[i]), to[2 * i + 1] = high(pairs[i]);
}

__device__ __forceinline__ uint4 packed(const float (&from)[8]) {
    return make_uint4(pair(from[0], from[1]), pair(from[2], from[3]), pair(from[4], from[5]), pair(from[6], from[7]));
}

__device__ __forceinline__ uint4 eight(const Half *from) { return __ldg(reinterpret_cast<const uint4 *>(from)); }

// Where eight channels of a pixel are in shared memory. Images of side H have a border of zeros, so rows and columns
// count from -1, as 0; rows are H + 3 apart, and chunks of eight channels swapped, such that those of eight pixels below
// each other share no bank.
template <int C, int H>
__device__ __forceinline__ int place(int image, int row, int column, int chunk) {
    const int swap = C == 16 ? row / 4 % 2 : C == 32 ? row / 2 % 4 : row % 8;
    return ((image * (H + 2) + row) * (H + 3) + column) * C + ((chunk ^ swap) << 3);
}
template <int C, int H, int IMG>
constexpr int ROOM = IMG * (H + 2) * (H + 3) * C;

// The same for a pixel inside, numbered row by row, image by image.
template <int C, int H>
__device__ __forceinline__ int inner(int pixel, int chunk) {
    return place<C, H>(pixel / (H * H), pixel / H % H + 1, pixel % H + 1, chunk);
}

// Tiles of sixteen pixels below each other, numbered column by column: where pixel i of them is. If images are eight
// pixels high, half of them are in the next image.
struct Where {
    int image, row;
};
template <int H>
__device__ __forceinline__ Where where(int tile, int i) {
    const int place = tile / H;
    if constexpr (H == 8)
        return {2 * place + i / 8, i % 8};
    else
        return {place / (H / 16), place % (H / 16) * 16 + i};
}

// Numbers that belong to eight channels, from shared memory.
__device__ __forceinline__ void take(const float *from, float (&to)[8]) {
    const float4 one = *reinterpret_cast<const float4 *>(from), two = *reinterpret_cast<const float4 *>(from + 4);
    to[0] = one.x, to[1] = one.y, to[2] = one.z, to[3] = one.w, to[4] = two.x, to[5] = two.y, to[6] = two.z, to[7] = two.w;
}

__device__ __forceinline__ float number(Sum sum, float unit) {
    return static_cast<float>(static_cast<long long>(sum)) / unit;
}
__device__ __forceinline__ void add(Sum *to, float value, float unit) {
    atomicAdd(to, static_cast<Sum>(llrintf(value * unit)));
}
__device__ __forceinline__ float rectified(float value) { return value < 0.0f ? 0.0f : value; }  // no number stays none

// What a normalisation does to a channel: norm(y) = slope y + offset.
struct Line {
    float mean, inverse, slope, offset;  // inverse: 1 / standard deviation
};
__device__ __forceinline__ Line line_of(const Norm &norm, int c, int channels, float n, bool evaluating) {
    const float mean = evaluating ? norm.mean[c] : number(norm.sums[c], FORTH) / n;
    const float spread = evaluating ? norm.variance[c] : number(norm.sums[channels + c], FORTH) / n - mean * mean;
    const float inverse = rsqrtf(fmaxf(spread, 0.0f) + EPS), slope = norm.gamma[c] * inverse;
    return {mean, inverse, slope, norm.beta[c] - mean * slope};
}

// Move the running moments of a channel; one program does.
__device__ __forceinline__ void follow(const Norm &norm, int c, int channels, float n, float mean) {
    if (blockIdx.x) return;
    const float spread = (number(norm.sums[channels + c], FORTH) / n - mean * mean) * (n / (n - 1.0f));
    norm.mean[c] += MOMENTUM * (mean - norm.mean[c]);
    norm.variance[c] += MOMENTUM * (spread - norm.variance[c]);
}

// relu(norm(y) + around), of eight channels.
__device__ __forceinline__ uint4 joined(const uint4 &y, const uint4 &around, const float (&slopes)[8],
                                        const float (&offsets)[8]) {
    float values[8], ways[8];
    unpack(y, values);
    unpack(around, ways);
#pragma unroll
    for (int c = 0; c < 8; ++c) values[c] = rectified(values[c] * slopes[c] + offsets[c] + ways[c]);
    return packed(values);
}

// Zeros around images; everywhere, if other pixels are not all going to be written.
template <int W, int C, int H, int IMG>
__device__ __forceinline__ void clear(Half *image, bool everywhere) {
    constexpr int CHUNKS = C / 8, SIDE = H + 2, BORDER = 4 * SIDE - 4;
    if (everywhere) {
        for (int i = threadIdx.x; i < ROOM<C, H, IMG> / 8; i += 32 * W)
            reinterpret_cast<uint4 *>(image)[i] = make_uint4(0, 0, 0, 0);
        return;
    }
    for (int i = threadIdx.x; i < IMG * CHUNKS * BORDER; i += 32 * W) {
        const int b = i / CHUNKS % BORDER, side = b - 2 * SIDE;
        const int row = b < SIDE ? 0 : b < 2 * SIDE ? SIDE - 1 : 1 + side / 2;
        const int column = b < SIDE ? b : b < 2 * SIDE ? b - SIDE : side % 2 * (SIDE - 1);
        const int at = place<C, H>(i / CHUNKS / BORDER, row, column, i % CHUNKS);
        *reinterpret_cast<uint4 *>(image + at) = make_uint4(0, 0, 0, 0);
    }
}

// Kernels, in rows of 9 CI and 8 more, so that rows share no bank.
template <int W, int CI, int CO>
__device__ __forceinline__ void send_kernels(const Half *w, Half *to) {
    for (int i = threadIdx.x; i < CO * 9 * CI / 8; i += 32 * W)
        send(to + 8 * i / (9 * CI) * (9 * CI + 8) + 8 * i % (9 * CI), w + 8 * i);
}

// The images of the first convolution, of which three of sixteen channels are there.
template <int W, int CI, int H, int IMG>
__device__ __forceinline__ void load_images(const float *x, int channel_step, int pixel_step, Half *image) {
    for (int i = threadIdx.x; i < IMG * H * H; i += 32 * W) {
        const int number = blockIdx.x * IMG + i / (H * H);
        const float *from = x + static_cast<int64_t>(number) * 3 * H * H + i % (H * H) * pixel_step;
        const Pair first = pair(from[0], from[channel_step]), second = pair(from[2 * channel_step], 0.0f);
        *reinterpret_cast<uint4 *>(image + inner<CI, H>(i, 0)) = make_uint4(first, second, 0, 0);
        *reinterpret_cast<uint4 *>(image + inner<CI, H>(i, 1)) = make_uint4(0, 0, 0, 0);
    }
}

// Eight channels of what comes around a block at a pixel of its output: of its input, where sizes differ every other
// pixel and half the channels of it.
template <int C, int H>
__device__ __forceinline__ uint4 way(const Half *skip, int pixel, int chunk, bool across) {
    if (!across) return eight(skip + static_cast<int64_t>(pixel) * C + chunk * 8);
    const int from = chunk - C / 32;
    if (from < 0 || from >= C / 16) return make_uint4(0, 0, 0, 0);
    const int image = pixel / (H * H), row = pixel / H % H, column = pixel % H;
    const int at = (image * 2 * H + 2 * row) * 2 * H + 2 * column;
    return eight(skip + static_cast<int64_t>(at) * (C / 2) + from * 8);
}

// The other way: what a gradient at a block's output gives to a pixel of its input.
template <int C, int H>
__device__ __forceinline__ uint4 way_back(const Half *around, int pixel, int chunk, bool across) {
    if (!around) return make_uint4(0, 0, 0, 0);
    if (!across) return eight(around + static_cast<int64_t>(pixel) * C + chunk * 8);
    const int image = pixel / (H * H), row = pixel / H % H, column = pixel % H;
    if (row % 2 || column % 2) return make_uint4(0, 0, 0, 0);
    const int at = (image * (H / 2) + row / 2) * (H / 2) + column / 2;
    return eight(around + static_cast<int64_t>(at) * (2 * C) + (chunk + C / 16) * 8);
}

// Sums over the pixels that threads have seen, each of the same eight channels; over warps, then over programs.
template <int W, int C>
__device__ __forceinline__ void add_sums(float (&sums)[8], float (&others)[8], float *room, Sum *to, float unit) {
    constexpr int CHUNKS = C / 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int apart = CHUNKS; apart < 32; apart *= 2) {
            sums[c] += __shfl_xor_sync(0xffffffffu, sums[c], apart);
            others[c] += __shfl_xor_sync(0xffffffffu, others[c], apart);
        }
        if (lane < CHUNKS) {
            room[warp * 2 * C + lane * 8 + c] = sums[c];
            room[warp * 2 * C + C + lane * 8 + c] = others[c];
        }
    }
    __syncthreads();
    if (threadIdx.x < 2 * C) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < W; ++w) total += room[w * 2 * C + threadIdx.x];
        add(to + threadIdx.x, total, unit);
    }
}

// What a warp multiplies: MT tiles of pixels beside each other, from the given one on, times NT tiles of kernels.
// Forward: pixels at a stride, shifted by the tap. Backward: shifted the other way, and kernels transposed. At a stride
// of 1 a tile serves three taps of a row, as what is left of, in and right of another one.
template <int CI, int CO, int H, int STRIDE, int MT, int NT, bool BACKWARD>
__device__ __forceinline__ void convolved(float (&total)[MT][NT][4], int tile, const Half *image, const Half *kernels) {
    constexpr int ROW = 9 * CI + 8, K = BACKWARD ? CO : CI, B = (NT + 1) / 2;
    const int lane = threadIdx.x % 32, column = tile % (H / STRIDE);
    const Where at = where<H / STRIDE>(tile, lane % 16);
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int nt = 0; nt < NT; ++nt)
#pragma unroll
            for (int i = 0; i < 4; ++i) total[mt][nt][i] = 0.0f;
#pragma unroll 1
    for (int row = 0; row < 3; ++row) {
#pragma unroll
        for (int k = 0; k < K; k += 16) {
            Pair b[3][B][4];
#pragma unroll
            for (int t = 0; t < 3; ++t)
#pragma unroll
                for (int j = 0; j < B; ++j) {
                    const int n = (2 * j + lane / 16) * 8, part = k + lane / 8 % 2 * 8, tap = row * 3 + (BACKWARD ? 2 - t : t);
                    if constexpr (BACKWARD)
                        load_matrices<true>(b[t][j], kernels + (part + lane % 8) * ROW + tap * CI + n);
                    else
                        load_matrices<false>(b[t][j], kernels + (n + lane % 8) * ROW + tap * CI + part);
                }
            const int shift = BACKWARD ? 2 - row : row;
            const Half *from =
                image + place<K, H>(at.image, at.row * STRIDE + shift, column * STRIDE, k / 8 + lane / 16);
            if constexpr (STRIDE == 1) {
#pragma unroll
                for (int j = 0; j < MT + 2; ++j) {
                    Pair a[4];
                    load_matrices<false>(a, from + j * K);
#pragma unroll
                    for (int t = 0; t < 3; ++t)
                        if (j - t >= 0 && j - t < MT)
#pragma unroll
                            for (int nt = 0; nt < NT; ++nt)
                                multiply(total[j - t][nt], a, b[t][nt / 2][nt % 2 * 2], b[t][nt / 2][nt % 2 * 2 + 1]);
                }
            } else {
#pragma unroll
                for (int mt = 0; mt < MT; ++mt)
#pragma unroll
                    for (int t = 0; t < 3; ++t) {
                        Pair a[4];
                        load_matrices<false>(a, from + (mt * STRIDE + t) * K);
#pragma unroll
                        for (int nt = 0; nt < NT; ++nt)
                            multiply(total[mt][nt], a, b[t][nt / 2][nt % 2 * 2], b[t][nt / 2][nt % 2 * 2 + 1]);
                    }
            }
        }
    }
}

// Tiles of a warp as bf16 in shared memory, where threads take eight channels of a pixel at a time from.
template <int C, int H, int MT, int NT>
__device__ __forceinline__ void lay_out(const float (&total)[MT][NT][4], int tile, int first, Half *to) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const Where at = where<H>(tile, lane / 4 + half * 8);
#pragma unroll
        for (int nt = 0; nt < NT; ++nt) {
            Half *start = to + place<C, H>(at.image, at.row + 1, tile % H + 1, first + nt) + lane % 4 * 2;
#pragma unroll
            for (int mt = 0; mt < MT; ++mt)
                *reinterpret_cast<Pair *>(start + mt * C) = pair(total[mt][nt][2 * half], total[mt][nt][2 * half + 1]);
        }
    }
}

template <int CI, int CO, int H, int STRIDE, int IMG, int W>
struct ForwardRoom {
    static constexpr int IMAGE = ROOM<CI, H, IMG>, KERNELS = CO * (9 * CI + 8);
    static constexpr int BYTES = 2 * (IMAGE + KERNELS) + 4 * (2 * CI + 2 * W * CO);
};

template <int CI, int CO, int H, int STRIDE, int IMG, int W>
__global__ void __launch_bounds__(32 * W, CO == 64 && STRIDE == 1 ? 1 : 2) convolve(const Forward p) {
    using Room = ForwardRoom<CI, CO, H, STRIDE, IMG, W>;
    constexpr int HO = H / STRIDE, WN = CO == 64 && STRIDE == 1 ? 2 : 1;
    constexpr int MT = IMG * HO * HO / (16 * W / WN), NT = CO / 8 / WN;
    SHARED_MEMORY(memory);
    Half *image = reinterpret_cast<Half *>(memory), *kernels = image + Room::IMAGE;
    float *slope = reinterpret_cast<float *>(kernels + Room::KERNELS), *offset = slope + CI, *room = offset + CI;
    const int thread = threadIdx.x;
    send_kernels<W, CI, CO>(p.w, kernels);
    clear<W, CI, H, IMG>(image, false);
    if (p.x) {
        load_images<W, CI, H, IMG>(p.x, p.channel_step, p.pixel_step, image);
    } else {
        constexpr int CHUNKS = CI / 8, SWEEPS = IMG * H * H * CHUNKS / (32 * W);
        const int start = blockIdx.x * IMG * H * H, chunk = thread % CHUNKS;
        uint4 values[SWEEPS], ways[SWEEPS];
#pragma unroll
        for (int u = 0; u < SWEEPS; ++u) {
            const int pixel = start + (thread + u * 32 * W) / CHUNKS;
            values[u] = eight(p.y + static_cast<int64_t>(pixel) * CI + chunk * 8);
            ways[u] = p.skip ? way<CI, H>(p.skip, pixel, chunk, p.across) : make_uint4(0, 0, 0, 0);
        }
        if (thread < CI) {
            const float n = static_cast<float>(p.images) * H * H;
            const Line line = line_of(p.norm, thread, CI, n, p.evaluating);
            slope[thread] = line.slope, offset[thread] = line.offset;
            if (!p.evaluating) follow(p.norm, thread, CI, n, line.mean);
        }
        __syncthreads();
        float slopes[8], offsets[8];
        take(slope + chunk * 8, slopes);
        take(offset + chunk * 8, offsets);
#pragma unroll
        for (int u = 0; u < SWEEPS; ++u) {
            const int pixel = (thread + u * 32 * W) / CHUNKS;
            const uint4 input = joined(values[u], ways[u], slopes, offsets);
            *reinterpret_cast<uint4 *>(image + inner<CI, H>(pixel, chunk)) = input;
            if (p.out)
                *reinterpret_cast<uint4 *>(p.out + static_cast<int64_t>(start + pixel) * CI + chunk * 8) = input;
        }
    }
    arrive();
    __syncthreads();

    const int warp = thread / 32, tile = warp % (W / WN) * MT, first = warp / (W / WN) * NT;
    float total[MT][NT][4];
    convolved<CI, CO, H, STRIDE, MT, NT, false>(total, tile, image, kernels + first * 8 * (9 * CI + 8));
    __syncthreads();
    lay_out<CO, HO>(total, tile, first, image);
    __syncthreads();
    constexpr int CHUNKS = CO / 8, SWEEPS = IMG * HO * HO * CHUNKS / (32 * W);
    const int chunk = thread % CHUNKS;
    float sums[8] = {}, squares[8] = {};
#pragma unroll
    for (int u = 0; u < SWEEPS; ++u) {
        const int pixel = (thread + u * 32 * W) / CHUNKS;
        const uint4 values = *reinterpret_cast<const uint4 *>(image + inner<CO, HO>(pixel, chunk));
        const int64_t at = (static_cast<int64_t>(blockIdx.x) * IMG * HO * HO + pixel) * CO + chunk * 8;
        *reinterpret_cast<uint4 *>(p.to + at) = values;
        float y[8];
        unpack(values, y);
#pragma unroll
        for (int c = 0; c < 8; ++c) sums[c] += y[c], squares[c] += y[c] * y[c];
    }
    if (!p.evaluating) add_sums<W, CO>(sums, squares, room, p.sums, FORTH);
}

// Gradients of kernels are spread over warps: MW tiles of sixteen channels outside times NW of eight inside each, for
// ROWS rows of the kernels at a time, and if that leaves warps, a part of the pixels each, added up in SLICES.
template <int CI, int CO, int H, int STRIDE, int IMG, int W>
struct BackwardRoom {
    static constexpr int PIXELS = ROOM<1, H, IMG>, KERNELS = CO * (9 * CI + 8);
    static constexpr int ROWS = CI == 64 ? 1 : 3, NW = CI == 64 ? 2 : 1, MW = CO == 64 && W == 8 ? 2 : 1;
    static constexpr int WM = CO / 16 / MW, WN = CI / 8 / NW, WK = W / (WM * WN);
    static constexpr int SLICE = CO * (9 * CI + 8), SLICES = WK > 1 ? 2 : 0;
    static constexpr int BYTES =
        2 * (PIXELS * (CI + CO) + KERNELS) + 4 * (3 * CO + 4 * CI + 2 * W * CI + SLICES * SLICE);
};

// The gradient of some rows of each kernel (outside, row, column, inside): products over pixels.
template <int CI, int CO, int H, int STRIDE, int IMG, int W>
__device__ __forceinline__ void weigh(const Half *slopes, const Half *image, int first, float *room, float *to, bool three) {
    using Room = BackwardRoom<CI, CO, H, STRIDE, IMG, W>;
    constexpr int HO = H / STRIDE, MW = Room::MW, NW = Room::NW, WK = Room::WK, ROWS = Room::ROWS, SLICES = Room::SLICES;
    constexpr int TILES = IMG * HO * HO / 16 / WK, RUN = TILES < HO ? TILES : HO;  // of a warp, and beside each other
    constexpr int COLUMNS = ((RUN - 1) * STRIDE + 4) / 2 * 2;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int wm = warp % Room::WM, wn = warp / Room::WM % Room::WN, wk = warp / (Room::WM * Room::WN);
    float total[MW][ROWS][3][NW][4] = {};
#pragma unroll 1
    for (int tile = wk * TILES; tile < (wk + 1) * TILES; tile += RUN) {
        const Where left = where<HO>(tile, lane / 16 * 8 + lane % 8), right = where<HO>(tile, lane / 8 % 2 * 8 + lane % 8);
        const int column = tile % HO * STRIDE;
        const Half *as[MW], *bs[ROWS];
#pragma unroll
        for (int m = 0; m < MW; ++m) {
            const int chunk = (wm * MW + m) * 2 + lane / 8 % 2;
            as[m] = slopes + place<CO, H>(left.image, left.row * STRIDE + 1, column + 1, chunk);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {  // sixteen channels of a column at a time, or eight of two
            const int row = right.row * STRIDE + first + r, half = lane / 16;
            bs[r] = image + (NW == 2 ? place<CI, H>(right.image, row, column, wn * 2 + half)
                                     : place<CI, H>(right.image, row, column + half, wn));
        }
        Pair b[ROWS][COLUMNS / (3 - NW)][4];
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 3 - NW)  // columns that were not there for the tile before
                if (j <= i * STRIDE + 2 && (i == 0 || j > (i - 1) * STRIDE + 2))
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) load_matrices<true>(b[r][j / (3 - NW)], bs[r] + j * CI);
#pragma unroll
            for (int m = 0; m < MW; ++m) {
                Pair a[4];
                load_matrices<true>(a, as[m] + i * STRIDE * CO);
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
#pragma unroll
                    for (int t = 0; t < 3; ++t)
#pragma unroll
                        for (int n = 0; n < NW; ++n) {
                            const int j = i * STRIDE + t, part = NW == 2 ? n : j % 2;
                            const Pair(&both)[4] = b[r][j / (3 - NW)];
                            multiply(total[m][r][t][n], a, both[2 * part], both[2 * part + 1]);
                        }
            }
        }
    }
    const auto put = [&](bool more) {
#pragma unroll
        for (int m = 0; m < MW; ++m)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int t = 0; t < 3; ++t)
#pragma unroll
                    for (int n = 0; n < NW; ++n)
#pragma unroll
                        for (int half = 0; half < 2; ++half) {
                            const int outside = (wm * MW + m) * 16 + lane / 4 + half * 8, tap = (first + r) * 3 + t;
                            const int inside = (wn * NW + n) * 8 + lane % 4 * 2;
                            const float(&d)[4] = total[m][r][t][n];
                            const float2 two = make_float2(d[2 * half], d[2 * half + 1]);
                            if constexpr (SLICES == 0) {
                                atomicAdd(reinterpret_cast<float2 *>(to + (outside * 9 + tap) * CI + inside), two);
                            } else {
                                float *slice = room + wk % SLICES * Room::SLICE + outside * (9 * CI + 8);
                                float2 *at = reinterpret_cast<float2 *>(slice + tap * CI + inside);
                                *at = more ? make_float2(at->x + two.x, at->y + two.y) : two;
                            }
                        }
    };
    if constexpr (SLICES == 0) {
        put(false);
    } else {
        for (int turn = 0; turn < WK / SLICES; ++turn) {
            if (wk / SLICES == turn) put(turn > 0);
            __syncthreads();
        }
        for (int i = threadIdx.x; i < CO * 9 * CI / 4; i += 32 * W) {
            const int outside = 4 * i / (9 * CI), rest = 4 * i % (9 * CI);
            const float *slice = room + outside * (9 * CI + 8) + rest;
            float4 four = *reinterpret_cast<const float4 *>(slice);
            const float4 more = *reinterpret_cast<const float4 *>(slice + Room::SLICE);
            four.x += more.x, four.y += more.y, four.z += more.z, four.w += more.w;
            if (!three) {
                atomicAdd(reinterpret_cast<float4 *>(to + outside * 9 * CI + rest), four);
            } else if (rest % CI == 0) {
                float *at = to + (outside * 9 + rest / CI) * 3;
                atomicAdd(at, four.x), atomicAdd(at + 1, four.y), atomicAdd(at + 2, four.z);
            }
        }
    }
}

template <int CI, int CO, int H, int STRIDE, int IMG, int W>
__global__ void __launch_bounds__(32 * W, CI == 64 || STRIDE > 1 ? 1 : CI == 32 ? TOGETHER_32 : 2) back(const Backward p) {
    using Room = BackwardRoom<CI, CO, H, STRIDE, IMG, W>;
    constexpr int HO = H / STRIDE, WN = CI == 16 ? 1 : 2;
    constexpr int MT = IMG * H * H / (16 * W / WN), NT = CI / 8 / WN;
    constexpr int CHUNKS_O = CO / 8, SWEEPS_O = IMG * HO * HO * CHUNKS_O / (32 * W);
    constexpr int CHUNKS = CI / 8, SWEEPS = IMG * H * H * CHUNKS / (32 * W);
    SHARED_MEMORY(memory);
    Half *slopes = reinterpret_cast<Half *>(memory), *image = slopes + Room::PIXELS * CO;
    Half *kernels = image + Room::PIXELS * CI;
    float *of_g = reinterpret_cast<float *>(kernels + Room::KERNELS), *of_y = of_g + CO, *rest = of_y + CO;
    float *slope = rest + CO, *offset = slope + CI, *mean = offset + CI, *inverse = mean + CI;
    float *room = inverse + CI, *slices = room + 2 * W * CI;
    const bool first = p.x != nullptr;
    const int thread = threadIdx.x, start = blockIdx.x * IMG * H * H, chunk = thread % CHUNKS;
    if (!first) send_kernels<W, CI, CO>(p.w, kernels);
    uint4 gs[SWEEPS_O], ys[SWEEPS_O];
#pragma unroll
    for (int u = 0; u < SWEEPS_O; ++u) {
        const int64_t at = (static_cast<int64_t>(blockIdx.x) * SWEEPS_O + u) * 32 * W + thread;
        gs[u] = eight(p.g + at * 8);
        ys[u] = eight(p.y + at * 8);
    }
    uint4 values[SWEEPS];
    if (!first) {
        const Half *from = (p.input ? p.input : p.under) + static_cast<int64_t>(start) * CI;
#pragma unroll
        for (int u = 0; u < SWEEPS; ++u) {
            values[u] = eight(from + (thread + u * 32 * W) * 8);
            if (thread % 8 == 0) {  // what is read last of all, a line of memory each
                const int pixel = start + (thread + u * 32 * W) / CHUNKS;
                if (p.input) expect(p.under + static_cast<int64_t>(pixel) * CI + chunk * 8);
                if (p.around && !p.across) expect(p.around + static_cast<int64_t>(pixel) * CI + chunk * 8);
            }
        }
    }
    clear<W, CO, H, IMG>(slopes, STRIDE > 1);
    clear<W, CI, H, IMG>(image, false);
    const float n = static_cast<float>(p.images) * HO * HO, below_n = static_cast<float>(p.images) * H * H;
    if (thread < CO) {
        // the gradient at y: gamma inverse (g - mean of g - norm(y) mean of g norm(y)), a line in g and y
        const Line line = line_of(p.norm, thread, CO, n, false);
        const float plain = number(p.found[thread], BACK), along = number(p.found[CO + thread], BACK);
        of_g[thread] = line.slope;
        of_y[thread] = -line.slope * line.inverse * along / n;
        rest[thread] = line.slope * (line.mean * line.inverse * along - plain) / n;
        if (blockIdx.x == 0) p.to_beta[thread] = plain, p.to_gamma[thread] = along;
    }
    if (thread < CI && !first) {
        const Line line = line_of(p.below, thread, CI, below_n, false);
        mean[thread] = line.mean, inverse[thread] = line.inverse, slope[thread] = line.slope, offset[thread] = line.offset;
    }
    __syncthreads();
    {
        const int outer = thread % CHUNKS_O;
        float gradients[8], others[8], rests[8];
        take(of_g + outer * 8, gradients);
        take(of_y + outer * 8, others);
        take(rest + outer * 8, rests);
#pragma unroll
        for (int u = 0; u < SWEEPS_O; ++u) {
            const int pixel = (thread + u * 32 * W) / CHUNKS_O;
            float g[8], y[8];
            unpack(gs[u], g);
            unpack(ys[u], y);
#pragma unroll
            for (int c = 0; c < 8; ++c) g[c] = gradients[c] * g[c] + others[c] * y[c] + rests[c];
            const int row = pixel / HO % HO * STRIDE + 1, column = pixel % HO * STRIDE + 1;
            *reinterpret_cast<uint4 *>(slopes + place<CO, H>(pixel / (HO * HO), row, column, outer)) = packed(g);
        }
    }
    if (first) {
        load_images<W, CI, H, IMG>(p.x, p.channel_step, p.pixel_step, image);
    } else {
        float slopes_in[8], offsets[8];
        take(slope + chunk * 8, slopes_in);
        take(offset + chunk * 8, offsets);
#pragma unroll
        for (int u = 0; u < SWEEPS; ++u) {
            const int pixel = (thread + u * 32 * W) / CHUNKS;
            if (!p.input) values[u] = joined(values[u], make_uint4(0, 0, 0, 0), slopes_in, offsets);
            *reinterpret_cast<uint4 *>(image + inner<CI, H>(pixel, chunk)) = values[u];
        }
    }
    arrive();
    __syncthreads();

    for (int row = 0; row < 3; row += Room::ROWS)
        weigh<CI, CO, H, STRIDE, IMG, W>(slopes, image, row, slices, p.to_w, first);
    if (first) return;

    const int warp = thread / 32, tile = warp % (W / WN) * MT, left = warp / (W / WN) * NT;
    float total[MT][NT][4];
    convolved<CI, CO, H, 1, MT, NT, true>(total, tile, slopes, kernels + left * 8);
    __syncthreads();
    lay_out<CI, H>(total, tile, left, slopes);
    uint4 unders[SWEEPS], ways[SWEEPS];
#pragma unroll
    for (int u = 0; u < SWEEPS; ++u) {
        const int pixel = start + (thread + u * 32 * W) / CHUNKS;
        unders[u] = eight(p.under + static_cast<int64_t>(pixel) * CI + chunk * 8);
        ways[u] = way_back<CI, H>(p.around, pixel, chunk, p.across);
    }
    __syncthreads();
    float means[8], inverses[8], sums[8] = {}, products[8] = {};
    take(mean + chunk * 8, means);
    take(inverse + chunk * 8, inverses);
#pragma unroll
    for (int u = 0; u < SWEEPS; ++u) {
        const int pixel = (thread + u * 32 * W) / CHUNKS;
        const int here = inner<CI, H>(pixel, chunk);
        float g[8], around[8], y[8], input[8];
        unpack(*reinterpret_cast<const uint4 *>(slopes + here), g);
        unpack(ways[u], around);
        unpack(unders[u], y);
        unpack(*reinterpret_cast<const uint4 *>(image + here), input);
#pragma unroll
        for (int c = 0; c < 8; ++c) g[c] = input[c] > 0.0f ? g[c] + around[c] : 0.0f;
        const uint4 rounded = packed(g);
        *reinterpret_cast<uint4 *>(p.to + static_cast<int64_t>(start + pixel) * CI + chunk * 8) = rounded;
        unpack(rounded, g);
#pragma unroll
        for (int c = 0; c < 8; ++c) sums[c] += g[c], products[c] += g[c] * (y[c] - means[c]) * inverses[c];
    }
    add_sums<W, CI>(sums, products, room, p.below_found, BACK);
}

// Mean over pixels, a linear layer and the cross-entropy of one image; and back to the gradient at norm(y).
__global__ void __launch_bounds__(THREADS) finish(const Head p) {
    constexpr int C = 64, H = 8, CLASSES = 10, GROUPS = THREADS / C, EACH = H * H / GROUPS;
    SHARED_MEMORY(memory);
    float *slope = reinterpret_cast<float *>(memory), *offset = slope + C, *mean = offset + C, *inverse = mean + C;
    float *pooled = inverse + C, *parts = pooled + C, *others = parts + THREADS, *scores = others + THREADS;
    const int thread = threadIdx.x, c = thread % C, group = thread / C;
    const float n = static_cast<float>(p.images) * H * H;
    if (thread < C) {
        const Line line = line_of(p.norm, thread, C, n, p.evaluating);
        mean[thread] = line.mean, inverse[thread] = line.inverse, slope[thread] = line.slope, offset[thread] = line.offset;
        if (!p.evaluating) follow(p.norm, thread, C, n, line.mean);
    }
    __syncthreads();
    const int start = blockIdx.x * H * H + group * EACH;
    float ys[EACH], total = 0.0f;
    uint32_t alive = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int pixel = start + i;
        float skip = 0.0f;
        if (!p.across) {
            skip = low(p.skip[static_cast<int64_t>(pixel) * C + c]);
        } else if (c >= C / 4 && c < 3 * C / 4) {
            const int64_t at = (static_cast<int64_t>(blockIdx.x) * 2 * H + pixel / H % H * 2) * 2 * H + pixel % H * 2;
            skip = low(p.skip[at * (C / 2) + c - C / 4]);
        }
        ys[i] = low(p.y[static_cast<int64_t>(pixel) * C + c]);
        const float out = rectified(ys[i] * slope[c] + offset[c] + skip);
        alive |= static_cast<uint32_t>(out > 0.0f) << i;
        total += out;
    }
    parts[thread] = total;
    __syncthreads();
    if (thread < C) {
        total = 0.0f;
        for (int i = 0; i < GROUPS; ++i) total += parts[i * C + thread];
        pooled[thread] = total / (H * H);
    }
    __syncthreads();
    if (thread < CLASSES) {
        float score = p.b[thread];
        for (int i = 0; i < C; ++i) score += p.w[thread * C + i] * pooled[i];
        scores[thread] = score;
        if (p.evaluating) p.logits[blockIdx.x * CLASSES + thread] = score;
    }
    if (p.evaluating) return;
    __syncthreads();
    const int label = static_cast<int>(p.labels[blockIdx.x]);
    float most = scores[0], sum = 0.0f, back = 0.0f;
    for (int k = 1; k < CLASSES; ++k) most = fmaxf(most, scores[k]);
    for (int k = 0; k < CLASSES; ++k) sum += expf(scores[k] - most);
    for (int k = 0; k < CLASSES; ++k) {
        const float slope_k = (expf(scores[k] - most) / sum - (k == label ? 1.0f : 0.0f)) / p.images;
        back += slope_k * p.w[k * C + c];
        if (group == 0) atomicAdd(p.to_w + k * C + c, slope_k * pooled[c]);
        if (thread == k) atomicAdd(p.to_b + k, slope_k);
    }
    if (thread == 0) atomicAdd(p.loss, (logf(sum) + most - scores[label]) / p.images);
    const Pair g = pair(back / (H * H), 0.0f);
    float plain = 0.0f, normal = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const Pair here = alive >> i & 1 ? g : 0;
        p.g[static_cast<int64_t>(start + i) * C + c] = static_cast<Half>(here);
        plain += low(here), normal += low(here) * (ys[i] - mean[c]) * inverse[c];
    }
    parts[thread] = plain, others[thread] = normal;
    __syncthreads();
    if (thread < C) {
        plain = normal = 0.0f;
        for (int i = 0; i < GROUPS; ++i) plain += parts[i * C + thread], normal += others[i * C + thread];
        add(p.found + thread, plain, BACK);
        add(p.found + C + thread, normal, BACK);
    }
}

__global__ void __launch_bounds__(THREADS) prepare(const Prepare p) {
    constexpr int FIRST = 16 * 9 * 16, THERE = 16 * 9 * 3;
    const int i = 4 * (blockIdx.x * THREADS + threadIdx.x);
    if (i >= p.count) return;
    const float *from = p.from + (i < FIRST ? i / 16 * 3 : i - FIRST + THERE);
    float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
    if (i >= FIRST || i % 16 == 0) four = {from[0], from[1], from[2], i < FIRST ? 0.0f : from[3]};
    *reinterpret_cast<uint2 *>(p.to + i) = make_uint2(pair(four.x, four.y), pair(four.z, four.w));
}

template <typename Given>
int start(void (*kernel)(Given), const Given &given, int programs, int threads, int bytes, cudaStream_t stream) {
    static void (*known[16])(Given) = {};  // those that were told how much shared memory they have
    for (auto &one : known) {
        if (one == kernel) break;
        if (one) continue;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        one = kernel;
        break;
    }
    LAUNCH(kernel, programs, threads, bytes, stream, given);
    return static_cast<int>(cudaGetLastError());
}

template <int CI, int CO, int H, int STRIDE, int IMG, int W>
int start_forward(const Forward &p, cudaStream_t stream) {
    using Room = ForwardRoom<CI, CO, H, STRIDE, IMG, W>;
    return start(convolve<CI, CO, H, STRIDE, IMG, W>, p, p.images / IMG, 32 * W, Room::BYTES, stream);
}

template <int CI, int CO, int H, int STRIDE, int IMG, int W>
int start_backward(const Backward &p, cudaStream_t stream) {
    using Room = BackwardRoom<CI, CO, H, STRIDE, IMG, W>;
    return start(back<CI, CO, H, STRIDE, IMG, W>, p, p.images / IMG, 32 * W, Room::BYTES, stream);
}

extern "C" {
int forward(const Forward *p, int inside, int outside, cudaStream_t stream) {
    if (outside == 16) return start_forward<16, 16, 32, 1, 1, WARPS_16>(*p, stream);
    if (inside == 16) return start_forward<16, 32, 32, 2, 1, 8>(*p, stream);
    if (outside == 32) return start_forward<32, 32, 16, 1, 2, WARPS_32>(*p, stream);
    if (inside == 32) return start_forward<32, 64, 16, 2, 2, 8>(*p, stream);
    return start_forward<64, 64, 8, 1, 4, WARPS_64>(*p, stream);
}

int backward(const Backward *p, int inside, int outside, cudaStream_t stream) {
    if (outside == 16) return start_backward<16, 16, 32, 1, 1, WARPS_16>(*p, stream);
    if (inside == 16) return start_backward<16, 32, 32, 2, 1, 8>(*p, stream);
    if (outside == 32) return start_backward<32, 32, 16, 1, 1, 8>(*p, stream);
    if (inside == 32) return start_backward<32, 64, 16, 2, 2, 8>(*p, stream);
    return start_backward<64, 64, 8, 1, 4, WARPS_64>(*p, stream);
}

int kernels(const Prepare *p, cudaStream_t stream) {
    return start(prepare, *p, (p->count / 4 + THREADS - 1) / THREADS, THREADS, 0, stream);
}

int head(const Head *p, cudaStream_t stream) {
    return start(finish, *p, p->images, THREADS, 4 * (5 * 64 + 2 * THREADS + 10), stream);
}
}
