# A parameter of devlink(8) that is set while the driver runs, up to another one: its own are taken only when it starts.
/^struct nsim_dev {/a\
	u32 work;
/^[[:space:]]*NSIM_DEVLINK_PARAM_ID_BASE\>/a\
	NSIM_DEVLINK_PARAM_ID_WORK,
/^static const struct devlink_param nsim_devlink_params/{
i\
static int work_get(struct devlink *device, u32 id, struct devlink_param_gset_ctx *to)\
{ struct nsim_dev *own = devlink_priv(device); to->val.vu32 = own->work; return 0; }\
static int work_set(struct devlink *device, u32 id, struct devlink_param_gset_ctx *to)\
{ struct nsim_dev *own = devlink_priv(device); if (to->val.vu32 > own->max_macs) return -ERANGE; own->work = to->val.vu32; return 0; }\

a\
	DEVLINK_PARAM_DRIVER(NSIM_DEVLINK_PARAM_ID_WORK, "work", DEVLINK_PARAM_TYPE_U32, BIT(DEVLINK_PARAM_CMODE_RUNTIME), work_get, work_set, NULL),
}
