// Terms added up at the places that they name, each sum in the order of its terms. `places` are sorted, and `order` has
// the terms' positions before the sort. A place may be named by all terms, so runs are cut into pieces of PIECE.
typedef Wide<T>::type A;

const i64 PIECE = 128;

// The sum of every run of equal places within a piece, stored where the run begins.
extern "C" __global__ void sum_runs(const i64* places, const i64* order, const T* terms, A* sums, i64 count) {
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (i64)blockDim.x * gridDim.x) {
        const i64 place = places[i], cut = (i / PIECE + 1) * PIECE, end = cut < count ? cut : count;
        if (i % PIECE && places[i - 1] == place) continue;
        A sum = 0;
        for (i64 k = i; k < end && places[k] == place; ++k) sum += widen(terms[order[k]]);
        sums[i] = sum;
    }
}

// The sums of a run's pieces, added to the target. A place outside of its `size` elements takes nothing up.
extern "C" __global__ void add_sums(const i64* places, const A* sums, T* target, i64 count, i64 size) {
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (i64)blockDim.x * gridDim.x) {
        const i64 place = places[i];
        if (place < 0 || place >= size || (i && places[i - 1] == place)) continue;
        A sum = sums[i];
        for (i64 k = (i / PIECE + 1) * PIECE; k < count && places[k] == place; k += PIECE) sum += sums[k];
        target[place] = narrow<T>(widen(target[place]) + sum);
    }
}
