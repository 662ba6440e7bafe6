# SPDX-License-Identifier: MIT
# Programs with a sanitizer. The tests start them by the thousand, and some hundred are linked, so
# both are made quick: the faster linker where there is one, and with gcc's address sanitizer one copy
# of the run-time library inside the program, at fixed addresses. Such a program has less to relocate
# when it starts and less to search for leaks when it ends. It exports the run-time library, because
# libmuster and what is loaded before it call it there.
include(CheckLinkerFlag)

check_linker_flag(C -fuse-ld=lld MUSTER_HAS_LLD)
if(MUSTER_HAS_LLD)
	target_link_options(muster_build INTERFACE -fuse-ld=lld)
endif()

if(CMAKE_C_COMPILER_ID STREQUAL GNU AND MUSTER_SANITIZE MATCHES address)
	set(MUSTER_FIXED_ADDRESSES ON) # harden.cmake
	target_link_options(muster_build INTERFACE -static-libasan -static-libubsan
		$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie$<SEMICOLON>-rdynamic>)
endif()
