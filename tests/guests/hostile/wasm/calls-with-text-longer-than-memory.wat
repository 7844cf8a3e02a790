;; Asks with a pointer of four gigabytes.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $get-string (local.get $observed) (i32.const 0) (i32.const -1) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
