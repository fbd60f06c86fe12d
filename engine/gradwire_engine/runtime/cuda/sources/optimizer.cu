// Optimizer steps over up to eight tensors at a time: blockIdx.y says which. Numbers that change from step to step are
// read from memory, so that a graph that holds the launch need not be made again.
typedef Wide<T>::type A;

#define EIGHT(type, name) \
    type name##0, type name##1, type name##2, type name##3, type name##4, type name##5, type name##6, type name##7
#define ONE_OF(name) \
    (at == 0 ? name##0 : at == 1 ? name##1 : at == 2 ? name##2 : at == 3 ? name##3 \
     : at == 4 ? name##4 : at == 5 ? name##5 : at == 6 ? name##6 : name##7)

const int MAXIMIZE = 1, NESTEROV = 2, DECOUPLED = 4, AMSGRAD = 8;

// numbers: rate, momentum, 1 - dampening, weight decay. Bit i of `first`: buffer i starts as the gradient.
extern "C" __global__ void sgd(
    EIGHT(T*, p), EIGHT(const T*, g), EIGHT(T*, buffer), EIGHT(i64, size), const double* numbers, int flags, int first
) {
    const int at = blockIdx.y;
    T* p = ONE_OF(p);
    const T* g = ONE_OF(g);
    T* buffer = ONE_OF(buffer);
    const i64 size = ONE_OF(size);
    const A rate = (A)numbers[0], momentum = (A)numbers[1], share = (A)numbers[2], decay = (A)numbers[3];
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += (i64)blockDim.x * gridDim.x) {
        A x = widen(p[i]), slope = widen(g[i]);
        if (flags & MAXIMIZE) slope = -slope;
        if (decay != 0) slope = x * decay + slope;
        A way = slope;
        if (buffer) {
            A kept = slope;
            if (!(first >> at & 1)) {
                kept = widen(buffer[i]) * momentum;
                kept += share == (A)1 ? slope : slope * share;
            }
            buffer[i] = narrow<T>(kept);
            way = flags & NESTEROV ? slope + kept * momentum : kept;
        }
        p[i] = narrow<T>(x - way * rate);
    }
}

__device__ __forceinline__ A blend(A from, A to, A weight, A rest) {
    return weight < (A)0.5 ? from + (to - from) * weight : to - (to - from) * rest;
}

// numbers: step size, beta1, 1 - beta1, beta2, 1 - beta2, eps, root of the second bias correction, weight decay (times
// the rate where it is decoupled).
extern "C" __global__ void adam(
    EIGHT(T*, p), EIGHT(const T*, g), EIGHT(T*, mean), EIGHT(T*, square), EIGHT(T*, top), EIGHT(i64, size),
    const double* numbers, int flags
) {
    const int at = blockIdx.y;
    T* p = ONE_OF(p);
    const T* g = ONE_OF(g);
    T* mean = ONE_OF(mean);
    T* square = ONE_OF(square);
    T* top = ONE_OF(top);
    const i64 size = ONE_OF(size);
    const A rate = (A)numbers[0], beta1 = (A)numbers[1], rest1 = (A)numbers[2], beta2 = (A)numbers[3];
    const A rest2 = (A)numbers[4], eps = (A)numbers[5], correction = (A)numbers[6];
    const A decay = (A)numbers[7], shrink = (A)(1 - numbers[7]);
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += (i64)blockDim.x * gridDim.x) {
        A x = widen(p[i]), slope = widen(g[i]);
        if (flags & MAXIMIZE) slope = -slope;
        if (flags & DECOUPLED) x *= shrink;
        else if (decay != 0) slope = x * decay + slope;
        const A first = blend(widen(mean[i]), slope, rest1, beta1);
        A second = widen(square[i]) * beta2 + slope * rest2 * slope;
        mean[i] = narrow<T>(first);
        square[i] = narrow<T>(second);
        if (flags & AMSGRAD) {
            second = larger((A)widen(top[i]), second);
            top[i] = narrow<T>(second);
        }
        p[i] = narrow<T>(x - first * rate / (sqrt(second) / correction + eps));
    }
}
