// Cross entropy of class indices. A target outside of the classes, which a GPU cannot refuse, gives NaN.
typedef Wide<T>::type A;

extern "C" __global__ void cross_entropy(
    const T* x, const i64* target, A* losses, A* logs, i64 cols, i64 ignored
) {
    x += (i64)blockIdx.x * cols;
    logs += (i64)blockIdx.x * cols;
    A top = -infinity<A>();
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) top = larger(top, (A)widen(x[i]));
    top = across_block<Largest<A> >(top);
    A mass = 0;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) mass += exp(widen(x[i]) - top);
    const A level = log(across_block<Sum<A> >(mass));
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) logs[i] = widen(x[i]) - top - level;
    if (threadIdx.x == 0) {
        const i64 wanted = target[blockIdx.x];
        A loss = 0;
        if (wanted != ignored) {
            const bool inside = wanted >= 0 && wanted < cols;
            loss = inside ? -(widen(x[wanted]) - top - level) : infinity<A>() - infinity<A>();
        }
        losses[blockIdx.x] = loss;
    }
}

// One block: the sum of the losses, divided by how many count when `mean`; and how many count. Either may be left out.
extern "C" __global__ void total_loss(
    const A* losses, const i64* target, i64 rows, i64 ignored, int mean, A* total, A* count
) {
    A sum = 0, counted = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) {
        if (losses) sum += losses[i];
        counted += (A)(target[i] != ignored);
    }
    sum = across_block<Sum<A> >(sum);
    counted = across_block<Sum<A> >(counted);
    if (threadIdx.x == 0) {
        if (losses) *total = mean ? sum / counted : sum;
        if (count) *count = counted;
    }
}

// `step`: 0 when all rows share one gradient, 1 when each has its own. `count` divides, unless there is none.
extern "C" __global__ void cross_entropy_backward(
    const A* g, int step, const A* logs, const i64* target, const A* count, T* out, i64 cols, i64 ignored
) {
    const i64 row = blockIdx.x, wanted = target[row];
    logs += row * cols;
    out += row * cols;
    A slope = wanted == ignored ? (A)0 : g[row * step];
    if (count && *count > 0) slope /= *count;
    for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
        const A share = exp(logs[i]) * slope;
        out[i] = narrow<T>(i == wanted && wanted != ignored ? share - slope : share);
    }
}
