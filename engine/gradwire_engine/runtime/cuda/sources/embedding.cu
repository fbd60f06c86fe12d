// The rows of a gradient added up by index, each sum in the order of the rows, so that it has the same bits each time.
typedef Wide<T>::type A;

// One block per row of g: the block of the first row with an index adds up all that have it. `out` is zero before.
extern "C" __global__ void embedding_backward(
    const T* g, const i64* index, T* out, int count, i64 cols, i64 rows, i64 padding
) {
    __shared__ int earlier;
    const int own = blockIdx.x;
    const i64 row = index[own];
    if (row < 0 || row >= rows || row == padding) return;
    if (threadIdx.x == 0) earlier = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < own; i += blockDim.x) {
        if (index[i] == row) earlier = 1;
    }
    __syncthreads();
    if (earlier) return;
    for (i64 col = threadIdx.x; col < cols; col += blockDim.x) {
        A sum = 0;
        for (int i = own; i < count; ++i) {
            if (index[i] == row) sum += widen(g[(i64)i * cols + col]);
        }
        out[row * cols + col] = narrow<T>(sum);
    }
}
