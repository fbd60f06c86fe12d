// Philox4x64-10: block n of a seed is four words of 64 bits, the same here as on NumPy (see random.py).
// Where a kernel is part of a graph, its first block is counted from `base`, which the graph's owner sets for each launch.

__device__ __forceinline__ void philox_round(u64 c[4], u64 k0, u64 k1) {
    const u64 m0 = 0xD2E7470EE14C6C93ULL, m1 = 0xCA5A826395121157ULL;
    const u64 high0 = __umul64hi(m0, c[0]), low0 = m0 * c[0];
    const u64 high1 = __umul64hi(m1, c[2]), low1 = m1 * c[2];
    c[0] = high1 ^ c[1] ^ k0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k1;
    c[3] = low0;
}

__device__ __forceinline__ void philox_block(u64 seed, u64 number, u64 c[4]) {
    u64 k0 = seed, k1 = 0;
    c[0] = number;
    c[1] = c[2] = c[3] = 0;
    #pragma unroll
    for (int turn = 0; turn < 10; ++turn) {
        philox_round(c, k0, k1);
        k0 += 0x9E3779B97F4A7C15ULL;
        k1 += 0xBB67AE8584CAA73BULL;
    }
}

extern "C" __global__ void philox4x64_10(u64 seed, u64 first, const u64* base, u64 blocks, u64* out) {
    if (base) first += *base;
    const u64 step = (u64)blockDim.x * gridDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step) {
        u64 c[4];
        philox_block(seed, first + i, c);
        for (int j = 0; j < 4; ++j) out[4 * i + j] = c[j];
    }
}

// Seed and first block, for kernels that draw the same words again later.
extern "C" __global__ void random_state(u64 seed, u64 first, const u64* base, u64* out) {
    out[0] = seed;
    out[1] = base ? first + *base : first;
}
