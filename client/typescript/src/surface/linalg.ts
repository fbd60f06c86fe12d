/** Linear algebra: matrices are the last two dimensions, the others are batches. */

import { ArgumentError } from "../errors.ts";
import { lookup } from "../ops/op.ts";
import type { Real } from "../ops/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { create, one, several } from "./calling.ts";

/** The inverse of each square matrix. A singular one throws `LinAlgError` when the result is read. */
export function inv(a: Tensor): Tensor {
  return one("inverse", a);
}

/** The determinant of each square matrix. */
export function det(a: Tensor): Tensor {
  return one("det", a);
}

/** The sign of the determinant and the logarithm of its magnitude. */
export function slogdet(a: Tensor): [sign: Tensor, logabsdet: Tensor] {
  return several("slogdet", a) as [Tensor, Tensor];
}

/** The solution of `a @ x == b`, of `x @ a == b` with `left: false`. `b` holds matrices, or one vector each. */
export function solve(a: Tensor, b: Tensor, options: { left?: boolean } = {}): Tensor {
  return one("linalg_solve", a, b, options.left ?? true);
}

/** The solution of `a @ x == b` by substitution; one triangle of `a` counts. */
export function solveTriangular(
  a: Tensor,
  b: Tensor,
  options: { upper: boolean; left?: boolean; unitriangular?: boolean },
): Tensor {
  return one("linalg_solve_triangular", a, b, options);
}

/** `a @ x == b` in least squares: the solution, its residuals, the rank of `a`, and its singular values. */
export function lstsq(
  a: Tensor,
  b: Tensor,
  options: { rcond?: number | null; driver?: string } = {},
): [solution: Tensor, residuals: Tensor, rank: Tensor, singularValues: Tensor] {
  const driver = options.driver ?? (a.device === "cpu" ? "gelsy" : "gels");
  return several("linalg_lstsq", a, b, options.rcond ?? null, driver) as [Tensor, Tensor, Tensor, Tensor];
}

/** The pseudo-inverse: singular values up to `max(atol, rtol * largest)` count as 0. */
export function pinv(
  a: Tensor,
  options: { atol?: Tensor | Real | null; rtol?: Tensor | Real | null; hermitian?: boolean } = {},
): Tensor {
  return one("linalg_pinv", a, options);
}

/** The lower (or upper) triangle whose product with its adjoint is the positive definite matrix. */
export function cholesky(a: Tensor, options: { upper?: boolean } = {}): Tensor {
  return one("linalg_cholesky", a, options.upper ?? false);
}

/** An orthogonal and an upper triangular matrix whose product is `a`. */
export function qr(a: Tensor, mode: "reduced" | "complete" | "r" = "reduced"): [q: Tensor, r: Tensor] {
  return several("linalg_qr", a, mode) as [Tensor, Tensor];
}

/** Permutation, lower and upper triangle whose product is `a`. */
export function lu(a: Tensor, options: { pivot?: boolean } = {}): [p: Tensor, l: Tensor, u: Tensor] {
  return several("linalg_lu", a, options.pivot ?? true) as [Tensor, Tensor, Tensor];
}

/** Eigenvalues and eigenvectors of symmetric (or Hermitian) matrices, of which one triangle counts. */
export function eigh(a: Tensor, uplo: "L" | "U" = "L"): [values: Tensor, vectors: Tensor] {
  return several("linalg_eigh", a, uplo) as [Tensor, Tensor];
}

/** The eigenvalues of {@link eigh}. */
export function eigvalsh(a: Tensor, uplo: "L" | "U" = "L"): Tensor {
  return one("linalg_eigvalsh", a, uplo);
}

/** Eigenvalues and eigenvectors, which are complex. */
export function eig(a: Tensor): [values: Tensor, vectors: Tensor] {
  return several("linalg_eig", a) as [Tensor, Tensor];
}

/** The eigenvalues of {@link eig}. */
export function eigvals(a: Tensor): Tensor {
  return one("linalg_eigvals", a);
}

/** The singular value decomposition: `a == u @ diag(s) @ vh`. */
export function svd(a: Tensor, options: { fullMatrices?: boolean } = {}): [u: Tensor, s: Tensor, vh: Tensor] {
  return several("linalg_svd", a, options.fullMatrices ?? true) as [Tensor, Tensor, Tensor];
}

/** The singular values, the largest first. */
export function svdvals(a: Tensor): Tensor {
  return one("linalg_svdvals", a);
}

/** The exponential of each square matrix. */
export function matrixExp(a: Tensor): Tensor {
  return one("matrix_exp", a);
}

/** The norm of order `ord` of vectors along `dim`, by default of all elements. */
export function vectorNorm(
  x: Tensor,
  ord: number = 2,
  options: { dim?: number | readonly number[] | null; keepdim?: boolean } = {},
): Tensor {
  return one("norm", x, ord, options);
}

/** The norm of matrices: `"fro"` is the root of the sum of squares, `"nuc"` the sum of singular values. */
export function matrixNorm(a: Tensor, ord: "fro" | "nuc" | 2 | -2 = "fro"): Tensor {
  if (ord === "fro") return one("norm", a, 2, [-2, -1]);
  const values = svdvals(a);
  if (ord === "nuc") return one("sum", values, -1);
  return one(ord === 2 ? "amax" : "amin", values, -1);
}

/** The cross product of vectors of three elements along a dimension. */
export function cross(a: Tensor, b: Tensor, dim: number = -1): Tensor {
  return one("cross", a, b, dim);
}

/** Square matrices to an integer power; negative ones are powers of the inverse. */
export function matrixPower(a: Tensor, n: number): Tensor {
  if (!Number.isInteger(n)) throw new ArgumentError(`matrixPower takes an integer power, not ${n}`);
  let base = n < 0 ? inv(a) : a;
  let result: Tensor | undefined;
  for (let rest = Math.abs(n); rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = result === undefined ? base : one("matmul", result, base);
    if (rest > 1) base = one("matmul", base, base);
  }
  if (result !== undefined) return result;
  const shape = a.shape;
  if (shape === undefined) throw new ArgumentError("matrixPower to 0 needs the shape: await a.size() first");
  const { dtype, device, session } = a;
  const identity = create(lookup("eye"), [shape[shape.length - 1]!, { dtype, device, session }]);
  return one("clone", one("expand", identity, shape));
}
