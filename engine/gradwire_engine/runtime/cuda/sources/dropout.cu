// Dropout with the session's own numbers: element i has the i-th half of a word, the lower half first, and stays where
// that is below `limit`. A thread takes the eight elements of one Philox block. `limit` of 2**32 keeps all.
typedef Wide<T>::type A;

extern "C" __global__ void dropout(
    const T* x, T* out, bool* kept, i64 size, u64 seed, u64 first, const u64* base, u64 limit, A scale
) {
    if (base) first += *base;
    const i64 step = (i64)blockDim.x * gridDim.x;
    for (i64 block = (i64)blockIdx.x * blockDim.x + threadIdx.x; block * 8 < size; block += step) {
        u64 c[4];
        philox_block(seed, first + (u64)block, c);
        for (int j = 0; j < 8; ++j) {
            const i64 i = block * 8 + j;
            if (i >= size) break;
            const u64 drawn = j & 1 ? c[j >> 1] >> 32 : c[j >> 1] & 0xffffffffULL;
            const bool stays = drawn < limit;
            kept[i] = stays;
            out[i] = narrow<T>(widen(x[i]) * (A)stays * scale);
        }
    }
}
