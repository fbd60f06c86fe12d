// CUDA C++ on a CPU, for tests: the threads of a block are fibers that are run in turn, blocks come one after the other.
// A fiber stops at a barrier of its block or its warp until all live fibers of that have come there, so kernels that
// misuse barriers are found: they do not end, and the launch says so.

#include <math.h>
#include <string.h>

#define EMULATED
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __restrict__

struct Index { unsigned x = 0, y = 0, z = 0; };
extern Index threadIdx, blockIdx, blockDim, gridDim;

inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

inline float half_to_float(unsigned short h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    float x = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
    return h & 0x8000 ? -x : x;
}
inline unsigned short float_to_half(float x) {
    const unsigned short sign = (unsigned short)(__float_as_uint(x) >> 16 & 0x8000);
    if (x != x) return sign | 0x7e00;
    const float size = fabsf(x);
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 6.103515625e-05f) return sign | (unsigned short)nearbyintf(ldexpf(size, 24));
    int exponent;
    const float mantissa = frexpf(size, &exponent);
    return sign | (unsigned short)(((exponent + 13) << 10) + (int)nearbyintf(ldexpf(mantissa, 11)));
}

namespace emulation {

extern unsigned current;
void stop(int reason);  // 1: wait for the block, 2: for the warp
int run(void (*call)(void*, void**), void* kernel, void** arguments, const unsigned* grid, const unsigned* block);
static unsigned long long slots[1024];

template <int... I> struct Places {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> { typedef Places<I...> type; };

template <typename... P> struct Call {
    template <int... I> static void spread(void* kernel, void** arguments, Places<I...>) {
        ((void (*)(P...))kernel)(*(P*)arguments[I]...);
    }
    static void call(void* kernel, void** arguments) {
        spread(kernel, arguments, typename Count<sizeof...(P)>::type());
    }
};

// 0; 1 when the number of arguments is wrong, 2 when a width is, 3 when a block does not end.
template <typename... P>
int launch(void (*f)(P...), const unsigned* grid, const unsigned* block, void** args, const int* widths, int count) {
    const int wanted[] = {(int)sizeof(P)..., 0};
    if (count != (int)sizeof...(P)) return 1;
    for (int i = 0; i < count; ++i) if (widths[i] != wanted[i]) return 2;
    return run(Call<P...>::call, (void*)f, args, grid, block);
}

}  // namespace emulation

inline void __syncthreads() { emulation::stop(1); }

template <typename X> X __shfl_xor_sync(unsigned, X value, int mask) {
    using namespace emulation;
    const unsigned mine = current;
    memcpy(&slots[mine], &value, sizeof value);
    stop(2);
    X theirs;
    memcpy(&theirs, &slots[mine ^ (unsigned)mask], sizeof theirs);
    stop(2);
    return theirs;
}
