// Attention whose weights are recomputed in backward: one block takes one row of a portion, which has `high` rows from
// `first_row` on of each matrix from `first_matrix` on, and the first `width` columns of `cols`.
typedef Wide<T>::type A;

struct Row {
    i64 start, levels, mask, seen;
    u64 drawn;
};

__device__ __forceinline__ Row row_of(
    i64 first_matrix, i64 first_row, i64 high, i64 rows, i64 cols, i64 width, i64 heads, i64 step0, i64 step1,
    i64 step2, int causal
) {
    const i64 matrix = first_matrix + (i64)blockIdx.x / high, row = first_row + (i64)blockIdx.x % high;
    Row at;
    at.start = (i64)blockIdx.x * width;
    at.levels = (matrix * rows + row) * 2;
    at.mask = matrix / heads * step0 + matrix % heads * step1 + row * step2;
    at.seen = causal && row + 1 < width ? row + 1 : width;
    at.drawn = (u64)(matrix * rows + row) * (u64)((cols + 7) / 8);
    return at;
}

// kind: 0 no mask, 1 true where allowed, 2 added.
__device__ __forceinline__ A masked(A score, const void* mask, int kind, i64 at) {
    if (kind == 1) return ((const bool*)mask)[at] ? score : -infinity<A>();
    return kind == 2 ? score + ((const A*)mask)[at] : score;
}

// By what dropout multiplies the eight weights from column `c` on.
__device__ __forceinline__ void toss(const u64* state, u64 drawn, i64 c, u64 limit, A factor, A coins[8]) {
    if (!state) {
        coins[0] = 1;
        return;
    }
    u64 words[4];
    philox_block(state[0], state[1] + drawn + (u64)(c / 8), words);
    for (int j = 0; j < 8; ++j) {
        const u64 half = j & 1 ? words[j >> 1] >> 32 : words[j >> 1] & 0xffffffffULL;
        coins[j] = half < limit ? factor : (A)0;
    }
}

// Scores to weights after dropout, in place or, where it is given, into `rounded`; levels of each row: the largest
// score, and 1 over the sum of exponentials. A row with nothing to attend to becomes 0.
extern "C" __global__ void attention_rows(
    A* scores, T* rounded, A* levels, const void* mask, int kind, i64 step0, i64 step1, i64 step2, i64 step3, i64 heads,
    i64 first_matrix, i64 first_row, i64 high, i64 rows, i64 cols, i64 width, int causal, A scale, const u64* state,
    u64 limit, A factor
) {
    const Row at = row_of(first_matrix, first_row, high, rows, cols, width, heads, step0, step1, step2, causal);
    scores += at.start;
    const int each = state ? 8 : 1;
    const i64 stride = (i64)blockDim.x * each;
    A top = -infinity<A>(), mass = 0, coins[8];
    for (i64 c = (i64)threadIdx.x * each; c < width; c += stride)
        for (i64 i = c; i < c + each && i < width; ++i) {
            const A score = i < at.seen ? masked(scores[i] * scale, mask, kind, at.mask + i * step3) : -infinity<A>();
            scores[i] = score;
            top = larger(top, score);
        }
    top = across_block<Largest<A> >(top);
    if (top == -infinity<A>()) top = 0;
    for (i64 c = (i64)threadIdx.x * each; c < width; c += stride)
        for (i64 i = c; i < c + each && i < width; ++i) {
            scores[i] = exp(scores[i] - top);
            mass += scores[i];
        }
    mass = across_block<Sum<A> >(mass);
    const A share = 1 / (mass == 0 ? (A)1 : mass);
    for (i64 c = (i64)threadIdx.x * each; c < width; c += stride) {
        toss(state, at.drawn, c, limit, factor, coins);
        for (i64 i = c; i < c + each && i < width; ++i) {
            const A weight = scores[i] * share * coins[i - c];
            if (rounded) rounded[at.start + i] = narrow<T>(weight);
            else scores[i] = weight;
        }
    }
    if (threadIdx.x == 0) {
        levels[at.levels] = top;
        levels[at.levels + 1] = share;
    }
}

// Scores, and gradients of the weights, to weights after dropout and gradients of unscaled scores; in place or into
// `rounded` and `rounded_slopes`.
extern "C" __global__ void attention_slopes(
    A* scores, A* slopes, T* rounded, T* rounded_slopes, const A* levels, const void* mask, int kind, i64 step0,
    i64 step1, i64 step2, i64 step3, i64 heads, i64 first_matrix, i64 first_row, i64 high, i64 rows, i64 cols,
    i64 width, int causal, A scale, const u64* state, u64 limit, A factor
) {
    const Row at = row_of(first_matrix, first_row, high, rows, cols, width, heads, step0, step1, step2, causal);
    scores += at.start;
    slopes += at.start;
    const int each = state ? 8 : 1;
    const i64 stride = (i64)blockDim.x * each;
    const A top = levels[at.levels], share = levels[at.levels + 1];
    A mean = 0, coins[8];
    for (i64 c = (i64)threadIdx.x * each; c < width; c += stride) {
        toss(state, at.drawn, c, limit, factor, coins);
        for (i64 i = c; i < c + each && i < width; ++i) {
            A weight = 0, slope = 0;
            if (i < at.seen) {
                weight = exp(masked(scores[i] * scale, mask, kind, at.mask + i * step3) - top) * share;
                slope = slopes[i] * coins[i - c];
            }
            scores[i] = weight;
            slopes[i] = slope;
            mean += slope * weight;
        }
    }
    mean = across_block<Sum<A> >(mean);
    for (i64 c = (i64)threadIdx.x * each; c < width; c += stride) {
        toss(state, at.drawn, c, limit, factor, coins);
        for (i64 i = c; i < c + each && i < width; ++i) {
            const A slope = (slopes[i] - mean) * scores[i] * scale, weight = scores[i] * coins[i - c];
            if (rounded) {
                rounded[at.start + i] = narrow<T>(weight);
                rounded_slopes[at.start + i] = narrow<T>(slope);
            } else {
                scores[i] = weight;
                slopes[i] = slope;
            }
        }
    }
}
