// Kernels over rows: one block takes one row of `cols` elements that lie side by side. T is the element type.
typedef Wide<T>::type A;

__device__ __forceinline__ A row_max(const T* x, i64 cols) {
    A top = -infinity<A>();
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) top = larger(top, (A)widen(x[i]));
    return across_block<Largest<A> >(top);
}

extern "C" __global__ void softmax(const T* x, T* out, i64 cols, int logarithm) {
    x += (i64)blockIdx.x * cols;
    out += (i64)blockIdx.x * cols;
    const A top = row_max(x, cols);
    A mass = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) mass += exp(widen(x[i]) - top);
    mass = across_block<Sum<A> >(mass);
    const A level = log(mass);
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A shifted = widen(x[i]) - top;
        out[i] = narrow<T>(logarithm ? shifted - level : exp(shifted) / mass);
    }
}

// Through a softmax: (g - sum(g * y)) * y * scale; through its logarithm: g - exp(y) * sum(g). `out` may be `g`.
extern "C" __global__ void softmax_backward(const T* g, const T* y, T* out, i64 cols, int logarithm, A scale) {
    g += (i64)blockIdx.x * cols;
    y += (i64)blockIdx.x * cols;
    out += (i64)blockIdx.x * cols;
    A sum = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) sum += logarithm ? widen(g[i]) : widen(g[i]) * widen(y[i]);
    sum = across_block<Sum<A> >(sum);
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A slope = widen(g[i]), value = widen(y[i]);
        out[i] = narrow<T>(logarithm ? slope - exp(value) * sum : (slope - sum) * value * scale);
    }
}

// Scores to attention weights, in place. Row r of `rows` in its matrix; a row with nothing to attend to becomes 0.
// mask: 0 none, 1 true where allowed, 2 added; it repeats after `period` elements (one matrix, or all of them).
// `rounded`, if given, gets the weights as elements, for a product in half precision.
extern "C" __global__ void attention_weights(
    A* scores, T* rounded, const void* mask, int kind, i64 period, i64 rows, i64 cols, int causal, A scale
) {
    const i64 start = (i64)blockIdx.x * cols;
    const i64 seen = causal ? (i64)blockIdx.x % rows + 1 : cols;
    const i64 within = period ? start % period : 0;
    scores += start;
    A top = -infinity<A>();
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        A score = scores[i] * scale;
        if (kind == 1 && !((const bool*)mask)[within + i]) score = -infinity<A>();
        if (kind == 2) score += ((const A*)mask)[within + i];
        if (i >= seen) score = -infinity<A>();
        scores[i] = score;
        top = larger(top, score);
    }
    top = across_block<Largest<A> >(top);
    if (top == -infinity<A>()) top = 0;
    A mass = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A weight = exp(scores[i] - top);
        scores[i] = weight;
        mass += weight;
    }
    mass = across_block<Sum<A> >(mass);
    if (mass == 0) mass = 1;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A weight = scores[i] / mass;
        scores[i] = weight;
        if (rounded) rounded[start + i] = narrow<T>(weight);
    }
}

extern "C" __global__ void layer_norm(
    const T* x, const T* weight, const T* bias, T* out, A* means, A* deviations, i64 cols, A eps
) {
    x += (i64)blockIdx.x * cols;
    out += (i64)blockIdx.x * cols;
    A sum = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) sum += widen(x[i]);
    const A mean = across_block<Sum<A> >(sum) / (A)cols;
    A squares = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A distance = widen(x[i]) - mean;
        squares += distance * distance;
    }
    const A rstd = (A)1 / sqrt(across_block<Sum<A> >(squares) / (A)cols + eps);
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        A hat = (widen(x[i]) - mean) * rstd;
        if (weight) hat *= widen(weight[i]);
        if (bias) hat += widen(bias[i]);
        out[i] = narrow<T>(hat);
    }
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        deviations[blockIdx.x] = rstd;
    }
}

extern "C" __global__ void layer_norm_backward(
    const T* g, const T* x, const A* means, const A* deviations, const T* weight, T* out, i64 cols
) {
    g += (i64)blockIdx.x * cols;
    x += (i64)blockIdx.x * cols;
    out += (i64)blockIdx.x * cols;
    const A mean = means[blockIdx.x], rstd = deviations[blockIdx.x];
    A along = 0, level = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A slope = weight ? widen(g[i]) * widen(weight[i]) : widen(g[i]);
        along += slope * ((widen(x[i]) - mean) * rstd);
        level += slope;
    }
    along = across_block<Sum<A> >(along) / (A)cols;
    level = across_block<Sum<A> >(level) / (A)cols;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A slope = weight ? widen(g[i]) * widen(weight[i]) : widen(g[i]);
        out[i] = narrow<T>((slope - (widen(x[i]) - mean) * rstd * along - level) * rstd);
    }
}

// The gradients of weight and bias, in parts: part p of column c sums the rows p, p + parts, p + 2 * parts, ...
extern "C" __global__ void layer_norm_parts(
    const T* g, const T* x, const A* means, const A* deviations, A* weight_parts, A* bias_parts, i64 rows, i64 cols
) {
    const i64 col = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    A of_weight = 0, of_bias = 0;
    for (i64 row = blockIdx.y; row < rows; row += gridDim.y) {
        const A slope = widen(g[row * cols + col]);
        of_weight += slope * ((widen(x[row * cols + col]) - means[row]) * deviations[row]);
        of_bias += slope;
    }
    weight_parts[(i64)blockIdx.y * cols + col] = of_weight;
    bias_parts[(i64)blockIdx.y * cols + col] = of_bias;
}

extern "C" __global__ void sum_parts(const A* parts, T* out, int count, i64 cols) {
    const i64 col = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    A sum = 0;
    for (int part = 0; part < count; ++part) sum += parts[(i64)part * cols + col];
    out[col] = narrow<T>(sum);
}
