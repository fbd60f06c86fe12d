// Kernels over channels of arrays (batch, channels, size): one block takes one channel, whose elements lie in `batch`
// runs of `size`. T is the element type.
typedef Wide<T>::type A;

struct Channel {
    u32 count, size, step, begin;  // element i lies at begin + (i / size) * step + i % size
    __device__ Channel(u32 batch, u32 channels, u32 size_)
        : count(batch * size_), size(size_), step(channels * size_), begin(blockIdx.x * size_) {}
    __device__ u32 at(u32 i) const { return size == 1 ? begin + i * step : begin + i / size * step + i % size; }
};

extern "C" __global__ void batch_norm_training(
    const T* x, const T* weight, const T* bias, T* out, T* means, T* vars, u32 batch, u32 channels, u32 size, A eps
) {
    const Channel own(batch, channels, size);
    const u32 c = blockIdx.x;
    A mean = 0, var = 0;
    for (u32 i = threadIdx.x; i < own.count; i += blockDim.x) mean += widen(x[own.at(i)]);
    mean = across_block<Sum<A> >(mean) / (A)own.count;
    for (u32 i = threadIdx.x; i < own.count; i += blockDim.x) {
        const A off = widen(x[own.at(i)]) - mean;
        var += off * off;
    }
    var = across_block<Sum<A> >(var) / (A)own.count;
    A scale = (A)1 / sqrt(var + eps);
    if (weight) scale *= widen(weight[c]);
    const A shift = bias ? (A)widen(bias[c]) : (A)0;
    for (u32 i = threadIdx.x; i < own.count; i += blockDim.x) {
        const u32 at = own.at(i);
        out[at] = narrow<T>((widen(x[at]) - mean) * scale + shift);
    }
    if (threadIdx.x == 0) {
        means[c] = narrow<T>(mean);
        vars[c] = narrow<T>(var);
    }
}

// `training`: mean and variance are those of x, which the gradient goes through.
extern "C" __global__ void batch_norm_backward(
    const T* g, const T* x, const T* means, const T* vars, const T* weight, T* out, T* of_weight, T* of_bias,
    u32 batch, u32 channels, u32 size, int training, A eps
) {
    const Channel own(batch, channels, size);
    const u32 c = blockIdx.x;
    const A mean = widen(means[c]), rstd = (A)1 / sqrt(widen(vars[c]) + eps);
    const A scale = weight ? rstd * widen(weight[c]) : rstd;
    A along = 0, level = 0;
    for (u32 i = threadIdx.x; i < own.count; i += blockDim.x) {
        const u32 at = own.at(i);
        const A slope = widen(g[at]);
        along += slope * (widen(x[at]) - mean);
        level += slope;
    }
    along = across_block<Sum<A> >(along) * rstd;
    level = across_block<Sum<A> >(level);
    if (threadIdx.x == 0) {
        of_weight[c] = narrow<T>(along);
        of_bias[c] = narrow<T>(level);
    }
    const A turn = -rstd * along / (A)own.count, less = level / (A)own.count;
    for (u32 i = threadIdx.x; i < own.count; i += blockDim.x) {
        const u32 at = own.at(i);
        A slope = widen(g[at]);
        if (training) slope += (widen(x[at]) - mean) * turn - less;
        out[at] = narrow<T>(slope * scale);
    }
}

// The sums of the columns of a matrix: rows blockIdx.y, blockIdx.y + gridDim.y, ... of each make one part.
extern "C" __global__ void column_parts(const T* x, A* parts, i64 rows, i64 cols) {
    const i64 col = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    A sum = 0;
    for (i64 row = blockIdx.y; row < rows; row += gridDim.y) sum += widen(x[row * cols + col]);
    parts[(i64)blockIdx.y * cols + col] = sum;
}
