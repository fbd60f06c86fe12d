// What every kernel stands on: element types, their arithmetic type, and reductions over a block.
//
// No header is included, so that NVRTC needs no path of a toolkit. Half precision is loaded as float32, computed with in
// float32, and rounded once, at the store. Blocks are whole warps. A sum over a block is a tree whose form depends on
// the block's size alone, so the same launch gives the same bits every time.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

struct float16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

template <typename T> struct Wide { typedef T type; };
template <> struct Wide<float16> { typedef float type; };
template <> struct Wide<bfloat16> { typedef float type; };

template <typename T> __device__ __forceinline__ T widen(T x) { return x; }
__device__ __forceinline__ float widen(bfloat16 x) { return __uint_as_float((u32)x.bits << 16); }
#ifndef EMULATED
__device__ __forceinline__ float widen(float16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}
#else
inline float widen(float16 x) { return half_to_float(x.bits); }
#endif

// Rounding to the element type, to nearest, ties to even.
template <typename T> struct Round {
    template <typename A> static __device__ __forceinline__ T of(A x) { return (T)x; }
};
template <> struct Round<bool> {
    template <typename A> static __device__ __forceinline__ bool of(A x) { return x != (A)0; }
};
template <> struct Round<bfloat16> {
    static __device__ __forceinline__ bfloat16 of(float x) {
        u32 bits = __float_as_uint(x);
        bfloat16 rounded;
        if (x != x) rounded.bits = (unsigned short)((bits >> 16) | 0x40u);
        else rounded.bits = (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
        return rounded;
    }
};
template <> struct Round<float16> {
    static __device__ __forceinline__ float16 of(float x) {
        float16 rounded;
#ifndef EMULATED
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
#else
        rounded.bits = float_to_half(x);
#endif
        return rounded;
    }
};
template <typename T, typename A> __device__ __forceinline__ T narrow(A x) { return Round<T>::of(x); }

template <typename A> __device__ __forceinline__ A infinity() { return (A)__uint_as_float(0x7f800000u); }
template <typename A> __device__ __forceinline__ A larger(A a, A b) { return a != a || a > b ? a : b; }
template <typename A> __device__ __forceinline__ A smaller(A a, A b) { return a != a || a < b ? a : b; }

template <typename A> struct Sum {
    static __device__ __forceinline__ A start() { return (A)0; }
    static __device__ __forceinline__ A of(A a, A b) { return a + b; }
};
template <typename A> struct Largest {
    static __device__ __forceinline__ A start() { return -infinity<A>(); }
    static __device__ __forceinline__ A of(A a, A b) { return larger(a, b); }
};

// The values of all threads of a block as one, given to all of them.
template <typename R, typename A> __device__ A across_block(A value) {
    __shared__ A parts[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int distance = 16; distance; distance >>= 1) value = R::of(value, __shfl_xor_sync(~0u, value, distance));
    if (warps == 1) return value;
    __syncthreads();  // the parts of the reduction before this one were read
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    value = lane < warps ? parts[lane] : R::start();
    for (int distance = 16; distance; distance >>= 1) value = R::of(value, __shfl_xor_sync(~0u, value, distance));
    return value;
}
