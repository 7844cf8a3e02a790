;; The code of the reason is said to have 2 GiB.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const 1024))
      (i32.store (i32.const 524) (i32.const 0x7fffffff))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
