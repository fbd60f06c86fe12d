# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.common_types import _size_2_t as _size_2_t, _size_4_t as _size_4_t, _size_6_t as _size_6_t
from gradwire.nn.modules.utils import _ntuple as _ntuple, _pair as _pair, _quadruple as _quadruple
from gradwire.nn.padding import CircularPad1d as CircularPad1d, CircularPad2d as CircularPad2d, CircularPad3d as CircularPad3d, ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d, ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d, ReflectionPad3d as ReflectionPad3d, ReplicationPad1d as ReplicationPad1d, ReplicationPad2d as ReplicationPad2d, ReplicationPad3d as ReplicationPad3d, ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d, ZeroPad3d as ZeroPad3d, _CircularPadNd as _CircularPadNd, _ConstantPadNd as _ConstantPadNd, _ReflectionPadNd as _ReflectionPadNd, _ReplicationPadNd as _ReplicationPadNd

