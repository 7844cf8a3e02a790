;; Grows its memory until it gets no more, and gives up as allocators do.
;; kind: health
;; expect: memory
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (br_if 0 (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
      unreachable
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
